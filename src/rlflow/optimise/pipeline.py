"""The way of a model from import to a checked and timed candidate: first each subgraph inside it, then the whole.

A subgraph of If, Loop, Scan or SequenceMap is made a model of its own and goes the same way, with the subgraphs inside
it before it: of a Loop whose body holds an If, the two branches come first, then the body, then the model. Each must
pass the gate alone, and the model as a whole passes it again. Where nothing is found, or nothing can be judged, a model
comes out as the object that went in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from onnx import ModelProto

from rlflow.cost.base import CostModel
from rlflow.equivalence.compare import EquivalenceReport
from rlflow.errors import EquivalenceError, RLFlowError
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.ir.tensor_type import Dimension
from rlflow.onnx_io import check_model, to_onnx
from rlflow.onnx_io.shapes.inference import pin_dimensions
from rlflow.onnx_io.subgraphs import Subgraph, size, subgraphs, with_subgraphs
from rlflow.optimise.diagnose import Derivation
from rlflow.optimise.gate import GateConfig, check, is_slower, judgeable, timed
from rlflow.optimise.report import LatencyChange, Step, SubgraphReport
from rlflow.optimise.specialise import Assumptions, Settled
from rlflow.optimiser import Budget, Effort, OnProgress, OptimisationResult, Optimiser
from rlflow.rules.library import Library
from rlflow.runtime.inputs import symbolic_dimensions
from rlflow.runtime.session import Setting
from rlflow.trajectory.record import Trajectory

NOTHING_FOUND = "no sequence of rewrites lowered its predicted cost"


@dataclass(frozen=True)
class PipelineResult:
    """The outcome for one model.

    `candidate` is the model itself where nothing was found or, as `unjudgeable` says, no candidate could be judged;
    `latency` is empty then. `inside` reports on its subgraphs, the innermost first. `shapes` are those of inputs that
    could be assumed.
    """

    candidate: ModelProto
    assumptions: Assumptions
    result: OptimisationResult
    settled: Settled
    equivalence: EquivalenceReport
    unjudgeable: str = ""
    inside: tuple[SubgraphReport, ...] = ()
    latency: dict[Setting, LatencyChange] = field(default_factory=dict)
    shapes: Mapping[str, tuple[Dimension, ...]] = field(default_factory=dict)

    @property
    def pinned(self) -> Mapping[str, tuple[Dimension, ...]]:
        """Shapes of inputs that the candidate assumes."""
        return self.shapes if self.pinned_for else {}

    @property
    def steps(self) -> tuple[Step, ...]:
        """Steps on the graph itself, without those in subgraphs."""
        return tuple(Step(s.rule, s.location, s.runtime_ms) for s in self.settled.trajectory.steps)

    @property
    def pinned_for(self) -> tuple[str, ...]:
        """Rules that need these shapes, in subgraphs or outside them."""
        inside = (rule for report in self.inside for rule in report.pinned_for)
        return (*inside, *self.settled.pinned_for)


@dataclass(frozen=True)
class Pipeline:
    """A method, and how what it finds is checked.

    `dimensions` are sizes that may be assumed, and `library` holds the rules for whose sake the opset may be raised.
    `reproducer` is the folder for what shows a wrong rule.
    """

    method: Optimiser
    cost_model: CostModel
    library: Library
    setting: Setting
    gate: GateConfig
    dimensions: Mapping[str, int]
    reproducer: Path | None = None
    on_progress: OnProgress | None = None

    def run(self, model: ModelProto, budget_s: float | None, argument: str = "") -> PipelineResult:
        """Optimise a valid model. Subgraphs and the graph around them share the budget as they share the nodes.

        `argument` is how a command names the model's file, if it has one. Raises `EquivalenceError` where a rule was
        wrong, and as `from_onnx` does.
        """
        return self._run(self._assumptions(model), budget_s, argument)

    def _run(self, as_given: Assumptions, budget_s: float | None, argument: str) -> PipelineResult:
        model, searched = as_given.model, as_given.searched
        equivalence, unjudgeable = judgeable(model, self.gate)
        if unjudgeable:
            nothing = self._nothing_done(searched)
            settled = as_given.settled(nothing, self.method.rewriter)
            return PipelineResult(model, as_given, nothing, settled, equivalence, unjudgeable)

        changed, inside = self._with_subgraphs(model, budget_s)
        assumptions = as_given if changed is model else self._assumptions(changed)
        own = Budget(_share(budget_s, len(model.graph.node), model))
        result = self.method.optimise(assumptions.searched, own, self.on_progress)
        settled = assumptions.settled(result, self.method.rewriter)
        found = PipelineResult(model, assumptions, result, settled, equivalence, inside=inside, shapes=as_given.shapes)
        if changed is model and not found.steps:
            return found
        return self._through_the_gate(found, model, argument if changed is model else changed)

    def _assumptions(self, model: ModelProto) -> Assumptions:
        return Assumptions(model, self.dimensions, self.library.rules)

    def _nothing_done(self, graph: Graph) -> OptimisationResult:
        """The result of no search at all, for a model of which no candidate could be judged."""
        matching = self.method.rewriter.matching
        no_steps = Trajectory(
            structural_hash(graph), 0.0, self.cost_model.name, self.library.hash, (), matching=matching
        )
        return OptimisationResult(graph, 0.0, 0.0, no_steps, wall_time_s=0.0, effort=Effort())

    def _with_subgraphs(
        self, model: ModelProto, budget_s: float | None
    ) -> tuple[ModelProto, tuple[SubgraphReport, ...]]:
        """Return the model with its optimised subgraphs, or the model itself where none was changed."""
        replaced, reports = {}, list[SubgraphReport]()
        for subgraph in subgraphs(model):
            optimised, inside = self._of_subgraph(subgraph, _share(budget_s, size(subgraph.model.graph), model))
            reports += inside
            if optimised is not subgraph.model:
                replaced[subgraph.place] = optimised

        changed = with_subgraphs(model, replaced)
        if any(report.pinned_for for report in reports):
            pin_dimensions(changed.graph, self.dimensions)
        return changed, tuple(reports)

    def _of_subgraph(self, subgraph: Subgraph, budget_s: float | None) -> tuple[ModelProto, list[SubgraphReport]]:
        """Return the subgraph's own model if it cannot be judged alone, nothing was found, or it became slower."""
        about = SubgraphReport(subgraph.node, subgraph.attribute)
        inside = self._inside(subgraph.model, about)
        assumptions = inside._assumptions(subgraph.model)
        try:
            if not inside._may_find(assumptions):
                return subgraph.model, [replace(about, left_because=NOTHING_FOUND)]
            made = inside._run(assumptions, budget_s, argument="")
        except EquivalenceError as error:
            raise EquivalenceError(f"in {about.place}, {error}") from None
        except RLFlowError as error:
            return subgraph.model, [replace(about, left_because=str(error))]

        about = replace(about, optimisation_s=made.result.wall_time_s, effort=made.result.effort)
        if not made.latency:
            return subgraph.model, [replace(about, left_because=made.unjudgeable or NOTHING_FOUND)]
        if is_slower(made.latency, self.setting):
            return subgraph.model, [replace(about, left_because="the rewritten one was slower beyond noise")]
        done = replace(
            about,
            steps=made.steps,
            pinned_for=made.settled.pinned_for,
            cost_before_ms=made.result.start_ms,
            cost_after_ms=made.result.best_ms,
        )
        return made.candidate, [*made.inside, done]

    def _inside(self, model: ModelProto, about: SubgraphReport) -> Pipeline:
        """The same for a subgraph, which must keep the opset of the graph around it."""
        symbols = symbolic_dimensions(model)

        def on_progress(done: float, text: str) -> None:
            if self.on_progress:
                self.on_progress(done, f"{about.place}: {text}")

        return replace(
            self,
            library=Library(()),
            gate=replace(self.gate, dimensions=_only(symbols, self.gate.dimensions or {})),
            dimensions=_only(symbols, self.dimensions),
            on_progress=on_progress,
        )

    def _may_find(self, assumptions: Assumptions) -> bool:
        """False for a graph without a match or subgraphs. Many have two or three nodes: running them would be waste."""
        matches = self.method.rewriter.matches(assumptions.searched)
        return any(matches.counts) or any(True for _ in subgraphs(assumptions.model))

    def _through_the_gate(self, found: PipelineResult, model: ModelProto, source: str | ModelProto) -> PipelineResult:
        """Export what was found, compare it with the model, and time it. Its steps start from `source`."""
        candidate = to_onnx(found.settled.last)
        check_model(candidate)
        steps = (found.settled.start, found.settled.trajectory, self.method.rewriter)
        derivation = Derivation(model, candidate, *steps, source or model, dimensions=self.gate.dimensions)
        equivalence = check(derivation, self.gate, self.reproducer)
        latency = {self.setting: timed(model, candidate, self.setting, self.gate, on_progress=self.on_progress)}
        return replace(found, candidate=candidate, equivalence=equivalence, latency=latency)


def _share(budget_s: float | None, nodes: int, model: ModelProto) -> float | None:
    """The part of the budget for so many of a model's nodes, among which those of its subgraphs count."""
    return None if budget_s is None else budget_s * max(nodes, 1) / max(size(model.graph), 1)


def _only(symbols: list[str], sizes: Mapping[str, int]) -> dict[str, int]:
    return {name: size for name, size in sizes.items() if name in symbols}
