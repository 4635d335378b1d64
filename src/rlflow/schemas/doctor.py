"""The document of `rlflow doctor`."""

from __future__ import annotations

from rlflow.schemas.figures import Cases, Count, Document, Error, Seed, Text
from rlflow.schemas.latency import Change


class DoctorFinding(Document):
    """One thing that makes a model slower or larger than it need be."""

    finder: Text
    """Its name; of a few of them there is more than one finding."""
    found: Text
    """A sentence on what is there."""
    advice: str
    """One on what to do; empty where that is nothing."""
    latency: Change | None
    """Of the model as it is and of what is advised; null where that is no question of time, or there was none."""
    bytes_saved: Count
    """What the file has less without it."""
    is_mended: bool
    """The model that is written is without it."""


class DoctorReport(Document):
    """Things that make a model slower or larger than it need be, apart from its graph."""

    rlflow_version: Text
    input: Text
    """Path as given."""
    output: Text | None
    """Path as given; null where nothing was to be written."""
    findings: list[DoctorFinding]
    not_looked_for: dict[str, Text]
    """By finder, why it could not look."""
    budget_s: Error
    hardware: Text
    """Name of the processor."""
    threads: Cases
    """Of a session, unless a finding says otherwise."""
    seed: Seed
