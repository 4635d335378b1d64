"""README, the table of the last evaluation, and the program that puts the one into the other."""

import runpy
from pathlib import Path

TABLE = "data/results/evaluate/table.md"


def with_table(repository: Path, readme: str, table: str) -> str:
    """`readme` with `table` in the place that is kept for it."""
    return runpy.run_path(str(repository / "docs/results_table.py"))["with_table"](readme, table)
