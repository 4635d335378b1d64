"""Fit the price model that ships to measured regions, and judge it."""
