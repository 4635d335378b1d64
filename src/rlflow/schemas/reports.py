"""The documents of `rlflow optimise`, `rlflow equivalence` and `rlflow replay` with `--json`."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from rlflow.schemas.figures import (
    NOT_EMPTY,
    Assumption,
    Cases,
    Count,
    Document,
    Error,
    Hash,
    Interval,
    Milliseconds,
    Percent,
    Ratio,
    Seconds,
    Seed,
    Share,
    Tally,
    Text,
    Written,
)

Setting = Text
"""A way to run a model: as_written, deployed, or another runtime, such as openvino."""


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


class Change(Document):
    """The latency of the candidate beside the original's in one setting."""

    latency_before_ms: Milliseconds
    latency_after_ms: Milliseconds
    decision: Literal["faster", "slower", "same", "undecided"]
    """The answer of prediction and rounds, or of rounds alone where a proof was asked for; same: within 1 % of the
    old one; undecided: the time was over before they said anything.
    """
    ratio: Ratio
    """Old over new, median over rounds."""
    ratio_interval: Interval | None
    """90 % interval as a pair [low, high], 99 % where a proof was asked for, which holds after whatever number of
    rounds; null where there were too few rounds for one.
    """
    faster_probability: Share
    """That the new model is faster, by the prediction and the rounds."""
    harmful_probability: Share
    """That it is slower by more than 1 %."""
    control_ratio: Ratio
    """The old model's first timing over its second, median over rounds."""
    rounds: Cases
    """Each with fresh sessions, two of either model."""
    rounds_retaken: Count
    """That do not count, because the machine was slow beside them."""


Shapes = dict[str, list[Count]]
"""By input, the shape that was named for it."""

Latency = dict[Setting, Change]
"""The change in the setting that was optimised for; empty where there was nothing to time."""


class Equivalence(Document):
    """The comparison of the candidate with the original."""

    equivalent: bool
    """Outputs agree within the tolerance, or in float64 where float32 is in doubt."""
    max_absolute_error: Error | None
    max_relative_error: Error | None
    tolerance: Error
    draws: Cases
    non_vacuous_draws: Count
    reason: str
    """What float64 said; empty where it was not asked."""
    own_error: Error | None
    """The original's relative error where it is run as it will be, not as written; null where that has no size."""
    by_setting: dict[Setting, SettingErrors]
    """Errors in each setting, against the original as written; empty where nothing was compared."""


class Step(Document):
    """One rewrite and the price of the graph that it leads to."""

    rule: Text
    """Stable id."""
    location: Count
    cost_ms: Milliseconds


class Passes(Document):
    """Whole-graph passes that were run before the search."""

    backend: Text
    passes: list[Text]
    """In their order; empty where none was taken."""
    tried: Count
    cost_before_ms: Milliseconds
    cost_after_ms: Milliseconds
    wall_time_s: Seconds
    left_because: str
    """Why none was taken; empty where some were."""
    domains: list[Text]
    """Of operators that the model has by these passes alone."""


class Measured(Document):
    """Measured prices of all parts, added up, of the graph that the search began with and of the one it took
    further.
    """

    before_ms: Milliseconds
    after_ms: Milliseconds
    graphs: Count


class Racer(Document):
    """A candidate that ran as a whole beside the original and other candidates."""

    without: list[Text]
    """Ids of the rules whose steps it does without; empty for what the search found."""
    steps: Count
    ratio: Ratio
    """The original's latency over its own, median over rounds."""
    rounds: Cases


class Refusal(Document):
    """A candidate that was refused before the one that was delivered."""

    phase: Text
    place: str
    """The subgraph; empty of the model as a whole."""
    reason: Text
    differs: bool
    """It computes something else; otherwise it could not be made or run."""
    rules: list[Text]
    """Of the first wrong step, without which the search went on."""
    step: Count
    """The first wrong one, counted from 1; 0 where that is not known."""
    fusions: list[Text]
    """Optimisers of ONNX Runtime without which it is right as deployed."""
    reproducer: str | None
    """The folder that shows it again."""


class Subnormals(Document):
    """The weights of a model with subnormal numbers: these, and those that are nearly so, are set to zero where that
    changes no output.
    """

    weights: Count
    """Weights in which numbers were set to zero."""
    numbers: Count
    """How many."""
    subnormal: Count
    """Of those, how many were subnormal."""
    left: Count
    """Subnormal numbers that stay as they are."""
    bound: Error
    """The sum of the sizes of all numbers that were set to zero: a sum of products loses at most so many times its
    largest operand.
    """
    max_relative_error: Error | None
    """Of the model without them against the original, both as written; null where none was set to zero."""
    margin: Error
    """How many times as large they may be without a difference either."""
    latency: Latency
    """The original beside the model without them; empty where there was no time."""
    run_ratio: Ratio | None
    """The same of a single run of each; null where none was set to zero."""
    left_because: str
    """Why none was set to zero; empty where some were."""


class Subgraph(Document):
    """The result in a subgraph of If, Loop, Scan or SequenceMap, which is tried by itself."""

    node: Text
    """Name of the node that the subgraph belongs to, or of its first output."""
    attribute: Text
    """Of this node, as in then_branch."""
    left_because: str
    """Why it stays as it is; empty where there are steps."""
    steps: list[Step]
    cost_before_ms: Milliseconds
    cost_after_ms: Milliseconds
    optimisation_s: Seconds
    real_interactions: Count
    prices_asked: Count
    prices_measured: Count
    rewriting_s: Seconds
    pricing_s: Seconds
    measuring_s: Seconds
    pinned_for: list[Text]
    refusals: list[Refusal]


class InSetting(Document):
    """The original and the rewritten model in one of several settings."""

    setting: Setting
    runtime: Text
    version: Text
    precision: Text
    errors: tuple[Error | None, Error | None]
    """Relative ones against the original as written, of the original and of the rewritten model; null: without size."""
    is_right: bool
    """The original's is one of rounding, or one that the user accepts."""
    is_equivalent: bool
    """So is the rewritten model's."""
    is_better: bool
    """The rewritten model is the one to take there; else the original is."""
    rewriting: Change | None
    """From the original to the rewritten model; null where there is none, or they do not run."""
    best: Change | None
    """From the better of both in the first setting to that in this one; null where they do not run."""
    left_because: str
    """Why they do not run; empty where they do."""


class AtSize(Document):
    """The original and the rewritten model at one of several sizes."""

    shapes: Shapes
    latency: Latency
    """Empty where there was no time."""
    equivalence: Equivalence


class SessionOptions(Document):
    """Options of ONNX Runtime's sessions that the delivered model carries in its metadata, or why it has none."""

    options: dict[str, int | str | list[str]]
    """By ONNX Runtime's names, those that are not the defaults; `disabled_optimizers` is an argument of a session."""
    python: list[Text]
    """Lines that open the model with them; none where it has no options."""
    latency: Change | None
    """From the model without options to that with them; null where it has none."""
    left_because: str
    """Why it has none; empty where it has some."""


class OptimiseReport(Document):
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
    real_interactions: Count
    """Rewrites carried out by the search."""
    prices_asked: Count
    """Prices that the search asked for, remembered ones as well."""
    prices_measured: Count
    """Prices that had to be measured on the runtime."""
    rewriting_s: Seconds
    """Time of the rewrites that the search carried out."""
    pricing_s: Seconds
    """Time of the prices, without measuring_s."""
    measuring_s: Seconds
    """Time of the measurements."""
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
