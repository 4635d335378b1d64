"""Agents that choose (rule, location) actions."""
