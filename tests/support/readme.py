"""README, the table of the last evaluation, and the program that puts the one into the other."""

import runpy
from pathlib import Path

from rlflow.tracking.provenance import committed

TABLE = "data/results/evaluate/table.md"


def with_table(repository: Path, readme: str, table: str) -> str:
    """`readme` with `table` in the place that is kept for it."""
    return runpy.run_path(str(repository / "docs/results_table.py"))["with_table"](readme, table)


def publishable_tables(repository: Path) -> list[str]:
    """The table of the last commit, and that of the working tree: a run's own, or the one to be committed next."""
    fresh, published = repository / TABLE, committed(repository, TABLE)
    return [table for table in (published, fresh.read_text() if fresh.exists() else None) if table is not None]
