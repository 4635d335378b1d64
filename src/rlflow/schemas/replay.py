"""The document of `rlflow replay`."""

from __future__ import annotations

from rlflow.schemas.figures import Count, Document, Hash, Milliseconds, Text


class ReplayStep(Document):
    """One rewrite, the hash of the graph that it leads to, and its price."""

    rule: Text
    """Stable id."""
    location: Count
    hash: Hash
    """Graph after the step."""
    cost_ms: Milliseconds


class ReplayReport(Document):
    """A trajectory, applied again."""

    trajectory: Text
    """Path as given."""
    model: Text
    """Path as given."""
    faithful: bool
    """Every step led to the recorded graph."""
    start_hash: Hash
    final_hash: Hash
    steps: list[ReplayStep]
