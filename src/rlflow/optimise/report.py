"""The report of one optimisation: for a person (`summary`) and for a program (`to_json`, schema `optimise`).

optimised.report.summary()     a few sentences: what was written and why, latency, cost, equivalence, steps
optimised.report.to_json()     the same figures and more, checked against the schema before it is returned
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from rlflow import schemas
from rlflow.equivalence.report import EquivalenceReport
from rlflow.ir.tensor_type import Dimension
from rlflow.method import Effort
from rlflow.optimise.clock import TimeSpent
from rlflow.optimise.refusal import Refusal
from rlflow.rules.certificate import ASSUMPTIONS
from rlflow.runtime.runtimes import RUNTIMES
from rlflow.runtime.session_options import DEFAULTS, SessionOptions
from rlflow.runtime.sizes import Size
from rlflow.runtime.timing.verdict import Verdict
from rlflow.schemas.figures import Written
from rlflow.schemas.reports import OptimiseReport
from rlflow.subnormal.flush import Decayed
from rlflow.subnormal.trial import MARGIN

_SETTING_WORDS: dict[str, str] = {
    "deployed": "as deployed (ONNX Runtime's own optimisation on)",
    "as_written": "as written (ONNX Runtime's own optimisation off)",
}
"""The settings of ONNX Runtime; others name their runtime."""
_WRITTEN_WORDS = {
    "optimised": "the optimised model",
    "flushed": "the original with its subnormal weights at zero",
    "original": "the original model",
}
_MOST_RULES = 5
_MOST_REASONS = 3
_PLAIN_FIELDS = (
    "input output method written reason nodes_before nodes_after cost_before_ms cost_after_ms "
    "improvement_percent  flops_ratio launches_ratio peak_memory_ratio optimisation_s "
    "budget_s setting threads hardware seed opset_before opset_after kept_at "
).split()


@dataclass(frozen=True)
class LatencyChange:
    """Measured milliseconds of a run before and after, and which is less, after rounds of which some were retaken."""

    before_ms: float
    after_ms: float
    verdict: Verdict
    retaken: int = 0


@dataclass(frozen=True)
class Measured:
    """The measured milliseconds of all parts of the graph that the search began with and of the one it went on with.

    Of so many `graphs` that was the cheapest.
    """

    before_ms: float
    after_ms: float
    graphs: int


@dataclass(frozen=True)
class Racer:
    """A candidate in a race: the steps that lead to it, ids of the rules that it does `without`, and its ratio to the
    original, above 1 if it is faster, over so many rounds.
    """

    without: tuple[str, ...]
    steps: int
    ratio: float
    rounds: int


@dataclass(frozen=True)
class InSetting:
    """Original and rewritten model in one of several settings, or why nothing is known of them there.

    Errors are relative, against the original as written. `is_right` says that the original's own is one of rounding, or
    one that the user accepts, `is_equivalent` the same of the rewritten model, and `is_better` that this is the one to
    take there. `rewriting` is what it changes there, if there is one, and `best` compares the better of both in the
    first setting with the better of both in this one.
    """

    setting: str
    error_before: float = 0.0
    error_after: float = 0.0
    is_right: bool = False
    is_equivalent: bool = False
    is_better: bool = False
    rewriting: LatencyChange | None = None
    best: LatencyChange | None = None
    left_because: str = ""

    @property
    def summary(self) -> str:
        """One line of a table."""
        runtime = RUNTIMES.get(self.setting)
        where = f"{runtime.name} {runtime.version}, {runtime.precision}"
        if self.best is None:
            return f"{where}: {self.left_because}"
        original = f"{where}: error {self.error_before:.1e}{'' if self.is_right else ', beyond the tolerance'}"
        best = f"{self.best.verdict.ratio:.3f} times as fast as the first line's"
        if self.rewriting is None:
            return f"{original}; {self.best.after_ms:.3f} ms, {best}"
        different = "" if self.is_equivalent else ", which is not equivalent"
        return (
            f"{original}; rewritten {self.error_after:.1e}{different}; {change_words(self.rewriting)}; "
            f"the faster of the two is {best}"
        )

    def to_json(self) -> dict[str, Any]:
        runtime = RUNTIMES.get(self.setting)
        errors = (self.error_before, self.error_after)
        return {
            "setting": self.setting,
            "runtime": runtime.name,
            "version": runtime.version,
            "precision": runtime.precision,
            "errors": [error if math.isfinite(error) else None for error in errors],
            "is_right": self.is_right,
            "is_equivalent": self.is_equivalent,
            "is_better": self.is_better,
            "rewriting": None if self.rewriting is None else latency_json(self.rewriting),
            "best": None if self.best is None else latency_json(self.best),
            "left_because": self.left_because,
        }


@dataclass(frozen=True)
class AtSize:
    """Original and rewritten model at one of several sizes; `latency` is empty where there was no time for it."""

    size: Size
    equivalence: EquivalenceReport
    latency: Mapping[str, LatencyChange] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """One line of a table."""
        changes = "; ".join(map(change_words, self.latency.values())) or "not timed"
        return f"{self.size}: {changes}; largest relative error {self.equivalence.max_relative_error:.1e}"

    def to_json(self) -> dict[str, Any]:
        return {
            "shapes": _shapes_json(self.size.shapes),
            "latency": _latencies_json(self.latency),
            "equivalence": _equivalence_json(self.equivalence),
        }


@dataclass(frozen=True)
class Step:
    """One substitution on the way to the best graph, and the graph's cost after it."""

    rule: str
    location: int
    cost_ms: float


@dataclass(frozen=True)
class SubgraphReport:
    """The attempt on a subgraph, which is an attribute of a node; the node goes by its name or its first output.

    The figures are those of an `OptimisationReport`, for the subgraph by itself. `left_because` says why it was left
    unchanged, and is "" where it was changed, by `steps` of its own or in subgraphs inside it alone.
    """

    node: str
    attribute: str
    left_because: str = ""
    steps: tuple[Step, ...] = ()
    cost_before_ms: float = 0.0
    cost_after_ms: float = 0.0
    optimisation_s: float = 0.0
    effort: Effort = field(default_factory=Effort)
    pinned_for: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()

    @property
    def place(self) -> str:
        return f"the {self.attribute} of {self.node}"

    def to_json(self) -> dict[str, Any]:
        own = {name: value for name, value in vars(self).items() if name != "effort"}
        lists = {
            "steps": [vars(step) for step in self.steps],
            "pinned_for": list(self.pinned_for),
            "refusals": [refusal.to_json() for refusal in self.refusals],
        }
        return own | lists | self.effort.to_json()


@dataclass(frozen=True)
class PassesReport:
    """Whole-graph passes of a backend that were run before the search, or why none of those `tried` was taken.

    Costs are predicted, of the model before and after the passes. `domains` are those of operators that the model has
    by these passes alone; other runtimes may not know them.
    """

    backend: str
    passes: tuple[str, ...] = ()
    tried: int = 0
    cost_before_ms: float = 0.0
    cost_after_ms: float = 0.0
    wall_time_s: float = 0.0
    left_because: str = ""
    domains: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """One sentence."""
        if not self.passes:
            return f"Passes of {self.backend} first: none taken of {self.tried} tried ({self.left_because})."
        costs = f"predicted cost {self.cost_before_ms:.3f} ms -> {self.cost_after_ms:.3f} ms"
        return f"Passes of {self.backend} first: {', '.join(self.passes)}, of {self.tried} tried; {costs}."

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {"passes": list(self.passes), "domains": list(self.domains)}


@dataclass(frozen=True)
class SubnormalReport:
    """The weights with numbers that are subnormal or nearly so: those in which they are zero now, with the `error` that
    this makes, and those that are `left` as they are.

    `latency` is that of the original and of the model without them, empty where a round of it would have taken too
    long; `run_ratio` compares a single run of each. `left_because` says why none was set to zero.
    """

    weights: tuple[Decayed, ...] = ()
    left: tuple[Decayed, ...] = ()
    error: float | None = None
    latency: Mapping[str, LatencyChange] = field(default_factory=dict)
    run_ratio: float | None = None
    left_because: str = ""

    @property
    def numbers(self) -> int:
        """Numbers that were set to zero."""
        return sum(each.numbers for each in self.weights)

    @property
    def stay(self) -> int:
        """Subnormal numbers that stay as they are."""
        return sum(each.subnormal for each in self.left)

    @property
    def bound(self) -> float:
        """The sum of their sizes: a sum of products loses at most so many times its largest operand."""
        return sum(each.magnitude for each in self.weights)

    @property
    def reason(self) -> str:
        """The gain, as a clause."""
        ratio = next((change.verdict.ratio for change in self.latency.values()), self.run_ratio)
        how = "" if self.latency else " by a run of each"
        here = "" if ratio is None else f", on this processor {ratio:.2f} times as fast{how}"
        subnormal = sum(each.subnormal for each in self.weights)
        return (
            f"{self.numbers} numbers in {_count(self.weights, 'weight')}, of which {subnormal} were subnormal, are zero"
            f"{here}; processors of Intel may take a hundred times as long with them"
        )

    @property
    def summary(self) -> str:
        """Sentences on what was set to zero and how it was proven, and on what is left."""
        where = _count(self.left, "weight")
        if not self.weights:
            return (
                f"Mind that {self.stay} numbers in {where} are subnormal, with which processors of Intel may take a "
                f"hundred times as long; they stay: {self.left_because}. `rlflow doctor` says what else helps."
            )
        others = f" In {where}, {self.stay} more stay as they are." if self.left else ""
        return (
            f"Subnormal weights: a sum of products loses at most {self.bound:.1e} times its largest operand, and "
            f"outputs {self.error:.1e} of their largest value; none would lose more than the tolerance if they were "
            f"{MARGIN:.0e} times as large.{others}"
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "weights": len(self.weights),
            "numbers": self.numbers,
            "subnormal": sum(each.subnormal for each in self.weights),
            "left": self.stay,
            "bound": self.bound,
            "max_relative_error": self.error,
            "margin": MARGIN,
            "latency": _latencies_json(self.latency),
            "run_ratio": self.run_ratio,
            "left_because": self.left_because,
        }


@dataclass(frozen=True)
class OptionsReport:
    """The session options that the delivered model carries, which are not ONNX Runtime's defaults, and its latency
    without and with them; or why it carries none.
    """

    options: SessionOptions = DEFAULTS
    latency: LatencyChange | None = None
    left_because: str = ""

    @property
    def reason(self) -> str:
        """The gain, as a clause."""
        ratio = "" if self.latency is None else f"{self.latency.verdict.ratio:.3f} times as fast "
        return f"{ratio}with session options"

    def summary(self, output: str) -> str:
        """Say what they gain, and how to open the model with them."""
        change = "" if self.latency is None else f", {change_words(self.latency)}"
        lines = "\n".join(f"  {line}" for line in self.options.lines(output))
        beside = ", on the wall clock beside what else ran here" if self.options.intra_op_num_threads else ""
        return f"Session options: {self.options}{change}{beside}. The model's metadata has them; in Python:\n{lines}"

    def to_json(self, output: str) -> dict[str, Any]:
        return {
            "options": self.options.to_json(),
            "python": [] if self.options == DEFAULTS else list(self.options.lines(output)),
            "latency": None if self.latency is None else latency_json(self.latency),
            "left_because": self.left_because,
        }


def _count(items: Sequence[Any], noun: str) -> str:
    return f"{len(items)} {noun}{'' if len(items) == 1 else 's'}"


@dataclass(frozen=True)
class OptimisationReport:
    """Everything that is said about one optimisation. `output` is None until the model is saved.

    Unless `written` is "optimised", the figures "after" belong to the candidate that was turned down, and
    `reason` says why. Ratios are old over new: above 1 is better. `latency` is empty where nothing was timed.

    `pinned` are the shapes that inputs declare where the original's are dynamic, and `pinned_for` the ids of the rules
    of the steps that need them; likewise `raised_for`, where `opset_after` is not `opset_before`.

    `measured` are prices of parts on this machine, added up, where there was time for them. The result was to be
    compared on `draws_asked` inputs; a budget may have left time for fewer.

    Nodes, costs, ratios, steps and time are those of the main graph, around its `subgraphs` as they became. `passes`
    were run before, if that was asked for; the figures "before" are those before them, and the steps come after them.
    `rule_names` holds the name of each rule that the report mentions by its id, `assumptions` the ids of the rules of
    steps that make each assumption (`rlflow.rules.certificate`) of the values that the model carries. `refusals` are
    about other candidates, which computed something else or could not be run. If there were subnormal weights, as
    `subnormals` tells, the model without them is the one "before", but for equality. `read` is what the caller reads
    of the original's outputs, whose whole the model "before" computes, and no other; empty: all of them.
    `settings` compare several, if that was asked for; what is written is for the fastest, `setting`. `shapes` are those
    of inputs that were named. Where they were for several sizes, `sizes` has original and candidate at each, and they,
    `latency` and `equivalence` are those of the first; so are all prices. `session_options`
    are those that were looked for after all else, if that was asked for: `latency` is that without them. `time_spent`
    tells what the time went to. An answer that was kept has the time of the run that found it, `kept_at`.
    """

    input: str
    output: str | None
    method: str
    written: Written
    reason: str
    nodes_before: int
    nodes_after: int
    cost_before_ms: float
    cost_after_ms: float
    latency: Mapping[str, LatencyChange]
    equivalence: EquivalenceReport
    steps: tuple[Step, ...]
    optimisation_s: float
    effort: Effort
    budget_s: float | None
    setting: str
    threads: int
    hardware: str
    seed: int
    opset_before: int
    opset_after: int
    flops_ratio: float = 1.0
    launches_ratio: float = 1.0
    peak_memory_ratio: float = 1.0
    pinned: Mapping[str, tuple[Dimension, ...]] = field(default_factory=dict)
    pinned_for: tuple[str, ...] = ()
    raised_for: tuple[str, ...] = ()
    subgraphs: tuple[SubgraphReport, ...] = ()
    rule_names: Mapping[str, str] = field(default_factory=dict)
    assumptions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    measured: Measured | None = None
    race: tuple[Racer, ...] = ()
    draws_asked: int = 0
    passes: PassesReport | None = None
    refusals: tuple[Refusal, ...] = ()
    subnormals: SubnormalReport | None = None
    read: tuple[str, ...] = ()
    settings: tuple[InSetting, ...] = ()
    shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    sizes: tuple[AtSize, ...] = ()
    session_options: OptionsReport | None = None
    time_spent: TimeSpent = field(default_factory=TimeSpent)
    kept_at: str | None = None

    @property
    def improvement_percent(self) -> float:
        """Drop of the cost model's runtime, in percent of the start."""
        if not self.cost_before_ms:
            return 0.0
        return 100 * (self.cost_before_ms - self.cost_after_ms) / self.cost_before_ms

    def to_json(self) -> dict[str, Any]:
        """Return the document of the type `OptimiseReport`. `RLFlowError` when a figure is not as that says."""
        document = {"rlflow_version": version("rlflow")} | {name: getattr(self, name) for name in _PLAIN_FIELDS}
        document |= self.effort.to_json()
        document["latency"] = _latencies_json(self.latency)
        document |= {"phases_s": dict(self.time_spent.phases), "first_answer_s": self.time_spent.first_answer_s}
        document["measured"] = None if self.measured is None else vars(self.measured)
        document["race"] = [vars(racer) | {"without": list(racer.without)} for racer in self.race]
        document["equivalence"] = _equivalence_json(self.equivalence)
        document["passes"] = None if self.passes is None else self.passes.to_json()
        document["steps"] = [vars(step) for step in self.steps]
        document["pinned"] = {name: list(shape) for name, shape in self.pinned.items()}
        document |= {"pinned_for": list(self.pinned_for), "raised_for": list(self.raised_for)}
        document["rule_names"] = dict(self.rule_names)
        document["assumptions"] = {name: list(rules) for name, rules in self.assumptions.items()}
        document["read"] = list(self.read)
        document["settings"] = [row.to_json() for row in self.settings]
        document["shapes"] = _shapes_json(self.shapes)
        document["sizes"] = [row.to_json() for row in self.sizes]
        options = self.session_options
        document["session_options"] = None if options is None else options.to_json(self._path)
        document["subgraphs"] = [subgraph.to_json() for subgraph in self.subgraphs]
        document["refusals"] = [refusal.to_json() for refusal in self.refusals]
        document["subnormals"] = None if self.subnormals is None else self.subnormals.to_json()
        schemas.validate(OptimiseReport, document)
        return document

    def summary(self) -> str:
        """Say in a few lines what was written and why, how much faster it is, how it was checked, what was done."""
        result = f"Wrote {self.output}" if self.output else "The result"
        lines = [
            f"{result}: {_WRITTEN_WORDS[self.written]} ({self.reason}).",
            *self._kept(),
            *self._warnings(),
            *self._outputs(),
            *(self._conditions() if self.written == "optimised" else ()),
            *self._latencies(),
            *self._options(),
            *self._findings(),
            *_subgraphs_words(self.subgraphs, self.rule_names),
        ]
        return "\n".join(lines)

    def _kept(self) -> Iterator[str]:
        if self.kept_at is not None:
            yield f"It was asked before, on {self.kept_at} with {self.budget_s:g} s: --anew optimises it again."

    def _outputs(self) -> Iterator[str]:
        if self.read:
            yield f"It computes what is read, and is compared with the same of the original: {', '.join(self.read)}."

    def _latencies(self) -> Iterator[str]:
        """A sentence on each setting in which both models were timed."""
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        if self.sizes:
            rows = "\n".join(f"  {row.summary}" for row in self.sizes)
            yield f"Latency {_setting_words(self.setting)}, {threads}, at each size:\n{rows}"
        else:
            for setting, change in self.latency.items():
                yield f"Latency {_setting_words(setting)}, {threads}: {change_words(change)}."
        if self.settings:
            rows = "\n".join(f"  {row.summary}" for row in self.settings)
            yield f"Fastest {_setting_words(self.setting)}, of these (errors against the original as written):\n{rows}"

    @property
    def _path(self) -> str:
        """The file of the model in a line of Python."""
        return self.output or "model.onnx"

    def _options(self) -> Iterator[str]:
        if self.session_options is not None and self.session_options.options != DEFAULTS:
            yield self.session_options.summary(self._path)

    def _warnings(self) -> Iterator[str]:
        """Sentences on what nobody may overlook: candidates that were wrong, and an original that is."""
        inside = (refusal for subgraph in self.subgraphs for refusal in subgraph.refusals)
        for refusal in (*self.refusals, *inside):
            yield refusal.summary
        if self.subnormals is not None:
            yield self.subnormals.summary
        if self.equivalence.differs_by_setting:
            runtime = RUNTIMES.get(self.equivalence.own_setting).name
            yield (
                f"Mind that {self.equivalence.own_difference} (tolerance {self.equivalence.tolerance:.1e}): a fusion "
                f"of {runtime} is wrong or lossy here. Nothing is delivered that is farther off."
            )

    def _findings(self) -> Iterator[str]:
        """The search's findings and how they were checked; of a model that was not rewritten, the search alone."""
        rewrites, prices = self.effort.rewrites, self.effort.prices_asked
        tried = f"{rewrites} {'rewrite' if rewrites == 1 else 'rewrites'} carried out, {prices} priced"
        steps = _steps_words(self.steps, self.rule_names)
        method = f"Method {self.method}: {steps} in {self.optimisation_s:.1f} s, {tried}."
        if self.latency or self.written == "optimised":
            yield (
                f"Predicted cost {self.cost_before_ms:.3f} ms -> {self.cost_after_ms:.3f} ms "
                f"({self.improvement_percent:+.1f} %), nodes {self.nodes_before} -> {self.nodes_after}, "
                f"FLOPs ratio {self.flops_ratio:.3f}, launches ratio {self.launches_ratio:.3f}, "
                f"peak memory ratio {self.peak_memory_ratio:.3f}."
            )
            yield from self._measured_words()
            yield from self._race_words()
            if not self.latency:
                yield "Not timed: whether it is faster is predicted, not known."
            yield f"Checked: {self.equivalence.summary}{self._fewer_draws()}."
        if self.passes is not None:
            yield self.passes.summary
        yield method
        if self.time_spent.phases:
            yield f"Time: {self.time_spent}."

    def _measured_words(self) -> Iterator[str]:
        if self.measured is not None:
            before_ms, after_ms = self.measured.before_ms, self.measured.after_ms
            begun = " after the passes" if self.passes and self.passes.passes else ""
            yield f"Measured part by part, the sum went from {before_ms:.3f} ms{begun} to {after_ms:.3f} ms."

    def _race_words(self) -> Iterator[str]:
        if self.race:
            ratios = "; ".join(f"{_racer_words(racer, self.rule_names)}: {racer.ratio:.3f}" for racer in self.race)
            yield f"Raced as whole models, times as fast as the original, the first to win: {ratios}."

    def _fewer_draws(self) -> str:
        draws = self.equivalence.draws
        return f"; there was time for {draws} of {self.draws_asked} draws" if draws < self.draws_asked else ""

    def _conditions(self) -> Iterator[str]:
        """A sentence for each thing that the written model requires and the original does not."""
        for assumption, rules in self.assumptions.items():
            yield f"It assumes that {ASSUMPTIONS[assumption]} ({_rules_words(rules, self.rule_names)})."
        if self.pinned:
            shapes = ", ".join(f"{name}={_shape_text(shape)}" for name, shape in self.pinned.items())
            yield f"It accepts only {shapes}, which {_rules_words(self.pinned_for, self.rule_names)} requires."
        if self.passes and self.passes.domains:
            yield f"It has operators of {', '.join(self.passes.domains)}, which not every runtime knows."
        if self.opset_after != self.opset_before:
            opsets = f"opset {self.opset_after} instead of {self.opset_before}"
            yield f"It uses {opsets}, which {_rules_words(self.raised_for, self.rule_names)} requires."


def _setting_words(setting: str) -> str:
    runtime = RUNTIMES.get(setting)
    return _SETTING_WORDS.get(setting, f"{runtime.said} {runtime.version}")


def _shape_text(shape: tuple[Dimension, ...]) -> str:
    return "x".join("?" if dimension is None else str(dimension) for dimension in shape)


def _shapes_json(shapes: Mapping[str, tuple[int, ...]]) -> dict[str, list[int]]:
    return {name: list(shape) for name, shape in shapes.items()}


def _latencies_json(latency: Mapping[str, LatencyChange]) -> dict[str, Any]:
    return {setting: latency_json(change) for setting, change in latency.items()}


def latency_json(change: LatencyChange) -> dict[str, Any]:
    """Return the change as the document type `Change` has it."""
    verdict = change.verdict
    return {
        "latency_before_ms": change.before_ms,
        "latency_after_ms": change.after_ms,
        "decision": verdict.decision,
        "ratio": verdict.ratio,
        "ratio_interval": [verdict.low, verdict.high] if verdict.bounded else None,
        "faster_probability": verdict.faster_probability,
        "harmful_probability": verdict.harmful_probability,
        "control_ratio": verdict.control,
        "rounds": verdict.rounds,
        "rounds_retaken": change.retaken,
    }


def _equivalence_json(report: EquivalenceReport) -> dict[str, Any]:
    kept = ("equivalent", "tolerance", "draws", "non_vacuous_draws", "reason")
    return {name: getattr(report, name) for name in kept} | report.errors_json()


def change_words(change: LatencyChange) -> str:
    """Return both times, how they compare and how sure that is, as a clause."""
    words = {
        "faster": f"{change.verdict.ratio:.3f} times as fast",
        "slower": f"slower, {change.verdict.ratio:.3f} times as fast",
        "same": "the same within the margin",
        "undecided": "no difference beyond noise",
    }
    retaken = f", {change.retaken} taken again beside a slow machine" if change.retaken else ""
    decision = words[change.verdict.decision]
    return f"{change.before_ms:.3f} ms -> {change.after_ms:.3f} ms, {decision} ({change.verdict}{retaken})"


def _steps_words(steps: tuple[Step, ...], names: Mapping[str, str]) -> str:
    if not steps:
        return "no substitution"
    noun = "substitution" if len(steps) == 1 else "substitutions"
    return f"{len(steps)} {noun} ({_rules_words([step.rule for step in steps], names)})"


def _subgraphs_words(subgraphs: Sequence[SubgraphReport], names: Mapping[str, str]) -> Iterator[str]:
    """A sentence on each subgraph that was changed, and one on all others."""
    for subgraph in subgraphs:
        if subgraph.steps:
            costs = f"predicted cost {subgraph.cost_before_ms:.3f} ms -> {subgraph.cost_after_ms:.3f} ms"
            yield f"In {subgraph.place}: {_steps_words(subgraph.steps, names)}, {costs}."
    left = Counter(subgraph.left_because for subgraph in subgraphs if subgraph.left_because)
    if left:
        reasons = "; ".join(f"{reason} (x{count})" for reason, count in left.most_common(_MOST_REASONS))
        yield f"Other subgraphs are unchanged: {reasons}."


def _racer_words(racer: Racer, names: Mapping[str, str]) -> str:
    what = f"{racer.steps} {'step' if racer.steps == 1 else 'steps'}"
    return f"{what} without {_rules_words(racer.without, names)}" if racer.without else what


def _rules_words(rules: Sequence[str], names: Mapping[str, str]) -> str:
    counts = Counter(names.get(rule, rule) for rule in rules)
    shown = ", ".join(f"{rule} x{count}" for rule, count in counts.most_common(_MOST_RULES))
    return shown + (f" and {len(counts) - _MOST_RULES} more" if len(counts) > _MOST_RULES else "")
