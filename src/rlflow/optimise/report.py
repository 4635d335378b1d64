"""The report of one optimisation: for a person (`summary`) and for a program (`to_json`, schema `optimise`).

optimised.report.summary()     a few sentences: what was written and why, latency, cost, equivalence, steps
optimised.report.to_json()     the same figures and more, checked against the schema before it is returned
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from rlflow import schemas
from rlflow.equivalence.report import EquivalenceReport
from rlflow.ir.tensor_type import Dimension
from rlflow.method import Effort
from rlflow.optimise.clock import TimeSpent
from rlflow.optimise.refusal import Refusal
from rlflow.optimise.reported.latency import LatencyChange, latencies_json
from rlflow.optimise.reported.options import OptionsReport
from rlflow.optimise.reported.passes import PassesReport
from rlflow.optimise.reported.race import Measured, Racer
from rlflow.optimise.reported.settings import InSetting
from rlflow.optimise.reported.sizes import AtSize, equivalence_json, shapes_json
from rlflow.optimise.reported.steps import Step, SubgraphReport, rules_words, steps_words, subgraphs_words
from rlflow.optimise.reported.subnormals import SubnormalReport
from rlflow.rules.certificate import ASSUMPTIONS
from rlflow.runtime.runtimes import RUNTIMES
from rlflow.runtime.session_options import DEFAULTS
from rlflow.schemas.figures import Written
from rlflow.schemas.optimise import OptimiseReport

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
_PLAIN_FIELDS = (
    "input output method written reason nodes_before nodes_after cost_before_ms cost_after_ms "
    "improvement_percent  flops_ratio launches_ratio peak_memory_ratio optimisation_s "
    "budget_s setting threads hardware seed opset_before opset_after kept_at "
).split()


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
        document["latency"] = latencies_json(self.latency)
        document |= {"phases_s": dict(self.time_spent.phases), "first_answer_s": self.time_spent.first_answer_s}
        document["measured"] = None if self.measured is None else vars(self.measured)
        document["race"] = [vars(racer) | {"without": list(racer.without)} for racer in self.race]
        document["equivalence"] = equivalence_json(self.equivalence)
        document["passes"] = None if self.passes is None else self.passes.to_json()
        document["steps"] = [vars(step) for step in self.steps]
        document["pinned"] = {name: list(shape) for name, shape in self.pinned.items()}
        document |= {"pinned_for": list(self.pinned_for), "raised_for": list(self.raised_for)}
        document["rule_names"] = dict(self.rule_names)
        document["assumptions"] = {name: list(rules) for name, rules in self.assumptions.items()}
        document["read"] = list(self.read)
        document["settings"] = [row.to_json() for row in self.settings]
        document["shapes"] = shapes_json(self.shapes)
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
            *subgraphs_words(self.subgraphs, self.rule_names),
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
                yield f"Latency {_setting_words(setting)}, {threads}: {change.summary}."
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
        steps = steps_words(self.steps, self.rule_names)
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
            ratios = "; ".join(racer.summary(self.rule_names) for racer in self.race)
            yield f"Raced as whole models, times as fast as the original, the first to win: {ratios}."

    def _fewer_draws(self) -> str:
        draws = self.equivalence.draws
        return f"; there was time for {draws} of {self.draws_asked} draws" if draws < self.draws_asked else ""

    def _conditions(self) -> Iterator[str]:
        """A sentence for each thing that the written model requires and the original does not."""
        for assumption, rules in self.assumptions.items():
            yield f"It assumes that {ASSUMPTIONS[assumption]} ({rules_words(rules, self.rule_names)})."
        if self.pinned:
            shapes = ", ".join(f"{name}={_shape_text(shape)}" for name, shape in self.pinned.items())
            yield f"It accepts only {shapes}, which {rules_words(self.pinned_for, self.rule_names)} requires."
        if self.passes and self.passes.domains:
            yield f"It has operators of {', '.join(self.passes.domains)}, which not every runtime knows."
        if self.opset_after != self.opset_before:
            opsets = f"opset {self.opset_after} instead of {self.opset_before}"
            yield f"It uses {opsets}, which {rules_words(self.raised_for, self.rule_names)} requires."


def _setting_words(setting: str) -> str:
    runtime = RUNTIMES.get(setting)
    return _SETTING_WORDS.get(setting, f"{runtime.said} {runtime.version}")


def _shape_text(shape: tuple[Dimension, ...]) -> str:
    return "x".join("?" if dimension is None else str(dimension) for dimension in shape)
