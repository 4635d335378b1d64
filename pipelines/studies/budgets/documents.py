"""The documents of the study."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from rlflow.schemas.figures import (
    NOT_EMPTY,
    Count,
    Document,
    Error,
    Figure,
    Percent,
    Positive,
    Ratio,
    Seconds,
    Text,
    Written,
)
from studies.figures import MeasuredRatio


class Allowance(Document):
    """A budget holds if the wall time is at most `factor` times the budget and these seconds."""

    factor: Positive
    seconds: Seconds


class Afterwards(MeasuredRatio):
    """The latency of the original over that of what was delivered, in rounds after the command had ended."""

    rounds: Count


class Run(Document):
    """One model, optimised within one budget in a process of its own."""

    wall_time_s: Seconds
    """Of the whole process, from before Python starts until it has ended."""
    wall_time_ratio: Error
    """Wall time over budget."""
    holds: bool
    """The wall time is within the allowance."""
    search_s: Seconds
    improvement_percent: Percent
    """That the search predicts of what it ended with."""
    share_percent: Percent | None
    """Of the improvement that the long run of the same model found; null where that is next to nothing, or there
    was none.
    """
    prices_measured: Count
    draws: Count
    """Inputs on which the result was compared and that could have told a wrong model from a right one."""
    rounds: Count
    """Of timing, 0 where there was no time for any or nothing to time."""
    latency_ratio: Ratio | None
    """Latency of the original over that of the result, as deployed; null where nothing was timed."""
    written: Written
    reason: Text
    afterwards: Afterwards | None
    """Null where the original was delivered."""


class Budget(Document):
    """The results of all models under one budget."""

    holding: Figure
    """Share of the models whose run was within the allowance; doing nothing always is."""
    longest_ratio: Error
    """The largest wall_time_ratio."""
    delivered: Figure | UnsetType = UNSET
    """Share of the models on which the search found something that were delivered optimised, as faster beyond
    noise; absent if it found nothing on any.
    """
    delivered_of_long: Figure | UnsetType = UNSET
    """Share of the models on which the long run delivered something faster, that were delivered optimised; absent if it
    did on none.
    """
    slower: Figure | UnsetType = UNSET
    """Share of what was delivered optimised that ran slower than the original by more than 1 % afterwards."""
    share_percent: Figure | UnsetType = UNSET
    """Median share of what the long run found, over models on which that found anything; absent if there is none."""


class Budgets(Document):
    """Wall time of `rlflow optimise` in a fresh process with an empty cache of prices, against its budget, and what
    it finds. Budgets are keys, in seconds.
    """

    allowance: Allowance
    long_s: Seconds
    """The budget of the run that the others' findings are a share of."""
    models: Annotated[
        dict[str, Annotated[dict[Annotated[str, Meta(pattern="^[0-9]+(\\.[0-9]+)?$")], Run], NOT_EMPTY]], NOT_EMPTY
    ]
    budgets: Annotated[dict[Annotated[str, Meta(pattern="^[0-9]+(\\.[0-9]+)?$")], Budget], NOT_EMPTY]


DOCUMENTS = {"budgets/*.json": Budgets}
"""Types of results files, by the pattern that the end of a file's path matches."""
