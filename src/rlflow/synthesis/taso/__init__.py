"""Comparison with TASO's rule set: its equations are found to be in the library, derived, refuted or missing."""
