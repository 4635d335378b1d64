"""Agents that order compiler passes, beside chains of passes and random ones."""
