"""Comparison of the methods, and the tables, figures and checked results that come of it."""
