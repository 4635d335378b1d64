"""Comparison with TASO's rule set: which of its equations the library has, derives, refutes or lacks."""
