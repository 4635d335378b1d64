"""Rollouts in the real environment, for a world model to be fitted on: one module for each formulation."""
