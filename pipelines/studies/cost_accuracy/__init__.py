"""A comparison of the sum of measured regions with the time of the whole model."""
