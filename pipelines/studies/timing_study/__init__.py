"""A count of how often the timing of two models is wrong."""
