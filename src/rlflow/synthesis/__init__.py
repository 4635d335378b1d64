"""Synthesis of rules: enumerate expressions, find equal ones, generalise and verify them, prune what follows."""
