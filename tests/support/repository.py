"""The root of this checkout."""

from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
