"""Equality saturation over whole models: all rewrites of a model at once, and the cheapest graph among them."""
