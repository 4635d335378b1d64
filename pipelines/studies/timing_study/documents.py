"""The documents of the study."""

from __future__ import annotations

from typing import Annotated

from rlflow.schemas.figures import NOT_EMPTY, Cases, Document, Error, Ratio, Seconds, Share


class Shares(Document):
    """Shares of the decisions."""

    faster_share: Share
    """Called faster."""
    slower_share: Share
    """Called slower."""
    same_share: Share
    """Found the same within 1 %; what remains was undecided when the time was over."""


class Group(Shares):
    """Decisions of one kind of pair on a machine of one load."""

    proven: Shares
    """By the sequential test at 99 % alone, as `--prove` asks for."""
    fixed_rounds: Shares
    """The trivial baseline, by the bootstrap interval of the median of seven rounds; a difference counts from 2 %."""
    ratio: Ratio
    """First model over second, median over the comparisons."""
    mean_rounds: Error
    """That count, until decided."""
    mean_rounds_retaken: Error
    """That do not count, because the machine was slow beside them."""
    mean_s: Seconds
    """That a comparison took."""
    cases: Cases


class Loads(Document):
    """Decisions by the load of the machine."""

    quiet: Group
    """On the machine as it is."""
    busy: Group
    """Beside busy loops."""


class Drawn(Shares):
    """Decisions on drawn times."""

    mean_rounds: Error
    """Until decided, or all."""
    cases: Cases


class Decided(Document):
    """Decisions on drawn times, by the rule that made them."""

    believed: Drawn
    """By prediction and rounds, where nothing was predicted."""
    flattered: Drawn
    """The same where a large saving was predicted."""
    proven: Drawn
    """By the sequential test at 99 % alone."""


class Simulated(Document):
    """Decisions on drawn times, by the pair of models."""

    same_model: Decided
    slower_model: Decided
    faster_model: Decided


class Timing(Document):
    """Counts of wrong decisions by the gate's rounds of two models' times.

    A model against itself, and against one that is slower by construction, on a quiet and a busy machine, and on drawn
    times.
    """

    load: Error
    """Processes that ran or waited to run in the minute before the study."""
    same_model: Loads
    slower_model: Loads
    slower_model_work_ratio: Ratio
    """Layers of the first over those of the second: the ratio to be found."""
    simulated: Annotated[dict[str, Simulated], NOT_EMPTY]
    """Kind of noise and its spread -> comparisons of drawn times."""


DOCUMENTS = {"timing/metrics.json": Timing}
"""Types of results files, by the pattern that the end of a file's path matches."""
