"""The documents of `rlflow optimise`: of one model, and of one for each size."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from rlflow.schemas.figures import (
    NOT_EMPTY,
    Assumption,
    Cases,
    Count,
    Document,
    Error,
    Milliseconds,
    Percent,
    Ratio,
    Seconds,
    Seed,
    Text,
    Written,
)
from rlflow.schemas.latency import Change, Latency, Setting
from rlflow.schemas.optimise_parts import (
    AtSize,
    Effort,
    Equivalence,
    InSetting,
    Measured,
    Passes,
    Racer,
    Refusal,
    SessionOptions,
    Shapes,
    Step,
    Subgraph,
    Subnormals,
)


class OptimiseReport(Effort):
    """The report of one optimisation; where the original was written, `..._after` figures belong to the candidate
    that was turned down.
    """

    rlflow_version: Text
    input: Text
    """Path as given."""
    output: Text | None
    """Path as given; null for a model that was not saved."""
    method: Text
    """Name of the method."""
    written: Written
    """Which model the output file holds."""
    reason: Text
    """Why this one, in a sentence."""
    nodes_before: Count
    nodes_after: Count
    cost_before_ms: Milliseconds
    cost_after_ms: Milliseconds
    improvement_percent: Percent
    flops_ratio: Ratio
    launches_ratio: Ratio
    peak_memory_ratio: Ratio
    latency: Latency
    equivalence: Equivalence
    steps: list[Step]
    """Substitutions that lead to the best graph, in order."""
    passes: Passes | None
    """Whole-graph passes that were run before the search; null where they were not asked for, or the original could
    not be judged.
    """
    measured: Measured | None
    """Measured prices of all parts, added up, of the graph that the search began with and of the one it took
    further, of so many graphs; null where there was no time for them.
    """
    race: list[Racer]
    """Candidates that raced, the one to win first; empty where there was no time for a race, or nothing to race.
    """
    phases_s: dict[str, Seconds]
    """What the time went to, by phase in order of their beginning: each lasts until the next one begins."""
    first_answer_s: Seconds
    """Time until a model had been checked that could be delivered, or until it was known that the original stays."""
    optimisation_s: Seconds
    budget_s: Error | None
    setting: Setting
    threads: Cases
    hardware: Text
    """Key of the hardware fingerprint."""
    seed: Seed
    read: list[Text]
    """The parts of the original's outputs that the caller reads, which are the outputs; empty: all of them, whole."""
    settings: list[InSetting]
    """Settings that were compared, if that was asked for; `setting` is the fastest, and what is written is for it."""
    shapes: Shapes
    """Those that were named; of several sizes, the first, of which `latency`, `equivalence` and all prices are."""
    sizes: list[AtSize]
    """Of the candidate, if several sizes were named; empty where there is no candidate."""
    session_options: SessionOptions | None
    """Null where none were looked for; `latency` and all other figures are those without them."""
    pinned: dict[str, list[int | str | None]]
    """By input, the shape that it declares where the original leaves sizes open; empty where they stay open."""
    rule_names: dict[str, Text]
    """Names of the rules of steps, by stable id."""
    assumptions: dict[Assumption, Annotated[list[Text], NOT_EMPTY]]
    """By what is assumed of the values that the model carries, the rules of steps that assume it; empty where
    nothing is.
    """
    pinned_for: list[Text]
    """Rules of the steps that cannot be taken while the sizes are open."""
    opset_before: Count
    opset_after: Count
    """Of ai.onnx; larger than before where a rule needs it."""
    raised_for: list[Text]
    """Rules of the steps that the original's opset does not have."""
    subgraphs: list[Subgraph]
    """What was tried in the subgraphs of If, Loop, Scan and SequenceMap, the innermost first, each by itself."""
    refusals: list[Refusal]
    """Candidates that were refused before the one that was delivered."""
    subnormals: Subnormals | None
    """Null where no weight of the original has subnormal numbers; else the model without them is the old one of
    `latency`, `..._before` and all other figures but those of equality.
    """
    kept_at: Text | None
    """The time at which an answer was found that was kept since; null for one that was found now."""


class DispatchModel(Document):
    """The model for one size."""

    shapes: Annotated[Shapes, NOT_EMPTY]
    file: Annotated[str, Meta(pattern=r"^[^/\\]+$")]
    """Its name, beside the table."""
    written: Written
    reason: Text
    latency: Change | None
    """Of the original and the candidate at this size, whichever was written; null where nothing was timed."""


class DispatchTable(Document):
    """Models by the shapes of their inputs, as `rlflow.dispatch_session` opens them."""

    rlflow_version: Text
    models: Annotated[list[DispatchModel], NOT_EMPTY]


class DispatchReport(Document):
    """The reports of a model that was optimised at each of several sizes by itself."""

    table: Text
    """The file of the dispatch table."""
    reports: Annotated[list[OptimiseReport], NOT_EMPTY]
