"""Synthesis of rules: enumerate expressions, find equal ones, generalise, verify, drop what follows from others."""
