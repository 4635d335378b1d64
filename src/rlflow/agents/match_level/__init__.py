"""Agents that act on match tokens."""
