"""Agents that choose compiler passes: six algorithms of Stable-Baselines3 on one environment."""
