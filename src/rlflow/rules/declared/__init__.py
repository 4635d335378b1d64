"""Declared rules: what enumeration over small operators does not reach, one file a family."""
