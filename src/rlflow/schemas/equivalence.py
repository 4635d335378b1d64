"""The document of `rlflow equivalence`."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType

from rlflow.schemas.figures import Cases, Count, Document, Error, Seed, Tally, Text


class Float64(Document):
    """The comparison in float64, relative to the output's largest absolute value; absent where float32 was in no
    doubt.
    """

    difference: Error | None
    """Of the two models; null where it is infinite."""
    allowed: Error
    """The largest difference that means nothing."""
    original_error: Error | None
    """Of the original as it runs, against itself in float64; null where it is infinite."""
    candidate_error: Error | None
    """Of the candidate as it runs, against the original in float64; null where it is infinite."""
    further: Literal["original", "candidate"]
    """The side with the larger error."""


class SettingErrors(Document):
    """The errors of outputs in one setting of a runtime."""

    max_absolute_error: Error | None
    max_relative_error: Error | None


class Mutants(Document):
    """The worth of the draws; absent where the models differ, where nothing could be told, or where none was tried."""

    mutants: Count
    """Models with one fault each that ran."""
    killed: Count
    """Of those, how many the draws told from the original."""
    survivors: list[Text]
    """Nodes that nobody looked at, with the fault."""


class EquivalenceReport(Document):
    """The comparison of two models: do they compute the same, within rounding?"""

    original: Text
    """Path as given."""
    candidate: Text
    """Path as given."""
    equivalent: bool
    reason: str
    """Why not, or why in spite of a difference above the tolerance."""
    max_absolute_error: Error | None
    """Null where it is infinite."""
    max_relative_error: Error | None
    """Of the output's largest absolute value; null where it is infinite."""
    tolerance: Error
    draws: Cases
    non_vacuous_draws: Count
    """Of those, how many could have shown a difference."""
    vacuous_outputs: list[str]
    """Outputs that no draw could judge."""
    worst_output: str | None
    """Null where nothing was run."""
    worst_draw: Tally | None
    """Counted from 0; null where nothing was run."""
    seed: Seed
    worst_setting: Literal["as_written", "deployed", None]
    """Null where nothing was run."""
    own_error: Error | None
    """The original's relative error where it is run as deployed; null where that has no size."""
    by_setting: dict[Literal["as_written", "deployed"], SettingErrors]
    """Errors in each setting, against the original as written; empty where nothing was compared."""
    exceptional_draws: Count
    """Further ones, with NaN or infinities."""
    float64: Float64 | UnsetType = UNSET
    mutants: Mutants | UnsetType = UNSET
