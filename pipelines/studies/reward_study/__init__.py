"""Estimated beside measured rewards: latency found, training time, noise."""
