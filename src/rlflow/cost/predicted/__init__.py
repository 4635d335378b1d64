"""Prices without a clock: regions of a graph priced by what was learned from measured ones."""
