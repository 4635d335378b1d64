"""Recorded rewrites and their replay."""
