"""Agents that choose the next rewrite."""
