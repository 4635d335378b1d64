"""Graphs and actions as numpy arrays."""
