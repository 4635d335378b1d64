"""Architectures of several frameworks, exported as their users export them."""
