"""Substitution rules: their notation, their verification, and where they apply."""
