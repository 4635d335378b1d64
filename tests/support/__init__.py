"""Shared by the tests: builders of models and graphs, strategies, names and checks, each in a module by subject."""
