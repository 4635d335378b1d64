"""Gather regions of models and measure them, for the price model."""
