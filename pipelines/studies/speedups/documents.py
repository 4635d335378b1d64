"""The documents of the study."""

from __future__ import annotations

from typing import Annotated

from rlflow.schemas.figures import (
    ASCENDING,
    NOT_EMPTY,
    Cases,
    Count,
    Document,
    Error,
    Figure,
    Load,
    Milliseconds,
    Percent,
    Positive,
    Ratio,
    Seconds,
    Text,
    Written,
)

RatioInterval = Annotated[tuple[Positive, Positive], ASCENDING] | None


class BestPublicTool(Document):
    """The best of the public tools on a model."""

    name: Text
    ratio: Ratio
    ratio_interval: RatioInterval


class Tool(Document):
    """The run of a public tool."""

    version: str
    tool_s: Seconds
    """Of the tool's process; 0 for a setting of ONNX Runtime."""
    failure: str
    """Why there is no model that computes the same; empty where there is one."""
    ratio: Ratio | None
    """Latency of the original over that of the tool's model; null after a failure."""
    ratio_interval: RatioInterval
    max_relative_error: Error | None
    """Of its model's outputs; null where there is nothing to compare."""
    draws: Count
    """Inputs on which they were compared and that could have told a wrong model from a right one."""


class Rewrite(Document):
    """A rule, and how often it was applied."""

    rule: Text
    count: Cases


class Optimise(Document):
    """The run of `rlflow optimise`."""

    budget_wall_time_s: Seconds
    """Of its whole process."""
    written: Written
    reason: Text
    rewrites: list[Rewrite]
    """Of the model that it judged, the most frequent first, be it written or not."""
    improvement_percent: Percent
    """That the search predicts."""
    own_ratio: Ratio | None
    """Of its own timing, in its budget; null where there was no time or nothing to time."""
    max_relative_error: Error
    tolerance: Error
    draws: Count
    """Inputs on which the result was compared and that could have told a wrong model from a right one."""


class Model(Document):
    """The speed of one optimised model beside its original."""

    ratio: Ratio
    """Latency of the original over that of RLFlow's model, median over rounds."""
    ratio_interval: RatioInterval
    """Of the sequential test, which misses with a probability of at most 1 %; null where there were too few rounds
    for one.
    """
    control_ratio: Ratio
    """The original over itself in the same rounds: the noise, and the baseline of every ratio."""
    target: Ratio
    """That is aimed at; 1 says that nothing may be lost."""
    met: bool
    """The ratio reaches a target above 1; the interval does not rule out a target of 1."""
    original_ms: Milliseconds
    """Median over the sessions of all rounds."""
    rounds: Cases
    """Each with two fresh sessions of every model."""
    rounds_retaken: Count
    """Beside a slow machine."""
    best_public_tool: BestPublicTool | None
    public_tools: Annotated[dict[str, Tool], NOT_EMPTY]
    optimise: Optimise
    load: Load
    """Processes that ran or waited to run in the last minute, before everything and after it; what is timed is one."""


class Speedups(Document):
    """The speed of models after `rlflow optimise` and after public tools, beside their originals.

    `rlflow optimise` runs in a fresh process with an empty cache of prices. All models run at ORT_ENABLE_ALL on one
    thread in alternating fresh sessions.
    """

    budget_s: Seconds
    """That `rlflow optimise` was given."""
    targets_met: Figure
    """Share of the models whose target is met; to do nothing meets those of 1."""
    models: Annotated[dict[str, Model], NOT_EMPTY]


DOCUMENTS = {"speedups/metrics.json": Speedups}
"""Types of results files, by the pattern that the end of a file's path matches."""
