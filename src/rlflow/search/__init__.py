"""Searches over rewrites: the baselines, on the same rules and prices as the agent."""
