"""Models to optimise, built from their architecture with seeded random weights; nothing is downloaded."""

from rlflow.zoo.registry import ZooEntry, build, check_settings, describe, names, names_with_optimum, optimum

__all__ = ["ZooEntry", "build", "check_settings", "describe", "names", "names_with_optimum", "optimum"]
