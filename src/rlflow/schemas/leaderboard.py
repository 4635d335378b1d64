"""The document of `rlflow leaderboard show --json`."""

from __future__ import annotations

from typing import Annotated

from rlflow.schemas.figures import NOT_EMPTY, Count, Document, Percent, Seconds, Seed, Text


class Standing(Document):
    """An entry in its row: a model at the prices of a cost model."""

    model: Text
    cost: Text
    rank: Count
    """From 1; entries that save the same share one."""
    method: Text
    seed: Seed
    saved_percent: Percent
    """Verified: of the original's price."""
    steps: Count
    rewrites: Count | None
    """As submitted: those that the method carried out."""
    seconds: Seconds | None
    """As submitted, on the processor."""
    processor: str


LeaderboardShow = Annotated[list[Standing], NOT_EMPTY]
"""All entries, row by row, the best of each first."""
