"""E-graphs: terms up to proven equality, matched and saturated by rules."""
