"""Equality saturation of whole models: their e-graph, its exploration by rules, and what is taken out of it again."""
