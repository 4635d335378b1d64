"""The parts of the document of `rlflow optimise`."""

from __future__ import annotations

from rlflow.schemas.equivalence import SettingErrors
from rlflow.schemas.figures import Cases, Count, Document, Error, Milliseconds, Ratio, Seconds, Text
from rlflow.schemas.latency import Change, Latency, Setting

Shapes = dict[str, list[Count]]
"""By input, the shape that was named for it."""


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


class Effort(Document):
    """The work of a search: rewrites, prices and time."""

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


class Subgraph(Effort):
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
