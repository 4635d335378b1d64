"""What a method makes of a model: of each body inside it first, as of a model of its own, and then of the whole."""

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
from rlflow.onnx_io.subgraphs import Body, bodies, size, with_bodies
from rlflow.optimise.diagnose import Derivation
from rlflow.optimise.gate import DeliveryConfig, check, is_slower, judgeable, latency_changes, time_models
from rlflow.optimise.report import BodyReport, LatencyChange, Step
from rlflow.optimise.specialise import Assumptions, Settled
from rlflow.optimiser import Budget, OnProgress, OptimisationResult, Optimiser
from rlflow.rules.library import Library
from rlflow.runtime.inputs import symbolic_dimensions
from rlflow.runtime.session import Setting
from rlflow.trajectory.record import Trajectory

NOTHING_FOUND = "no sequence of rewrites lowered its predicted cost"


@dataclass(frozen=True)
class Rewritten:
    """What became of a model.

    `candidate` is the model itself where nothing was found or, as `unjudgeable` says, nothing could have been said of
    a candidate; `latency` is empty then. `inside` is what was tried in its bodies, the innermost first. `shapes` are
    those of inputs that could be taken for granted.
    """

    candidate: ModelProto
    assumptions: Assumptions
    result: OptimisationResult
    settled: Settled
    equivalence: EquivalenceReport
    unjudgeable: str = ""
    inside: tuple[BodyReport, ...] = ()
    latency: dict[Setting, LatencyChange] = field(default_factory=dict)
    shapes: Mapping[str, tuple[Dimension, ...]] = field(default_factory=dict)

    @property
    def pinned(self) -> Mapping[str, tuple[Dimension, ...]]:
        """Shapes of inputs that the candidate takes for granted."""
        return self.shapes if self.pinned_for else {}

    @property
    def steps(self) -> tuple[Step, ...]:
        """Those of the graph itself."""
        return tuple(Step(s.rule, s.location, s.runtime_ms) for s in self.settled.trajectory.steps)

    @property
    def pinned_for(self) -> tuple[str, ...]:
        """Rules that need these shapes, inside or not."""
        inside = (rule for body in self.inside for rule in body.pinned_for)
        return (*inside, *self.settled.pinned_for)


@dataclass(frozen=True)
class Rewriting:
    """How models are rewritten: the method, and how what it finds is checked.

    `dimensions` are sizes that may be taken for granted, and `library` holds the rules for whose sake the opset may be
    raised. `reproducer` is the folder for what shows a wrong rule.
    """

    method: Optimiser
    cost_model: CostModel
    library: Library
    setting: Setting
    delivery: DeliveryConfig
    dimensions: Mapping[str, int]
    reproducer: Path | None = None
    on_progress: OnProgress | None = None

    def of(self, model: ModelProto, budget_s: float | None, name: str = "") -> Rewritten:
        """The bodies and the graph around them share the budget as they share the nodes. `name` is that of the model's
        file, if it has one.

        Raises `EquivalenceError` where a rule was wrong, and as `from_onnx` does.
        """
        as_it_is = self._assumptions(model)
        equivalence, unjudgeable = judgeable(model, self.delivery)
        if unjudgeable:
            nothing = self._untouched(as_it_is.searched)
            return Rewritten(model, as_it_is, nothing, self._settled(as_it_is, nothing), equivalence, unjudgeable)
        changed, inside = self._with_bodies(model, budget_s)
        assumptions = as_it_is if changed is model else self._assumptions(changed)
        own = Budget(_share(budget_s, len(model.graph.node), model))
        result = self.method.optimise(assumptions.searched, own, self.on_progress)
        settled = self._settled(assumptions, result)
        found = Rewritten(model, assumptions, result, settled, equivalence, inside=inside, shapes=as_it_is.shapes)
        if changed is model and not found.steps:
            return found
        return self._delivered(found, model, changed, "" if changed is not model else name)

    def _may_find(self, model: ModelProto) -> bool:
        """Models hold many bodies of two or three nodes, which need not be run to see that there is nothing to do."""
        matches = self.method.rewriter.matches(self._assumptions(model).searched)
        return any(matches.counts) or any(True for _ in bodies(model))

    def _assumptions(self, model: ModelProto) -> Assumptions:
        return Assumptions.of(model, self.dimensions, self.library.rules)

    def _settled(self, assumptions: Assumptions, result: OptimisationResult) -> Settled:
        return assumptions.settled(result.trajectory, self.method.rewriter)

    def _untouched(self, graph: Graph) -> OptimisationResult:
        """No search at all: nothing could be said of what it finds."""
        nothing_done = Trajectory(structural_hash(graph), 0.0, self.cost_model.name, self.library.hash, ())
        return OptimisationResult(graph, 0.0, 0.0, nothing_done, wall_time_s=0.0, interactions=0)

    def _with_bodies(self, model: ModelProto, budget_s: float | None) -> tuple[ModelProto, tuple[BodyReport, ...]]:
        """The model with what became of its bodies, or the model itself where nothing did."""
        replaced, reports = {}, list[BodyReport]()
        for body in bodies(model):
            rewritten, inside = self._of_body(body, _share(budget_s, size(body.model.graph), model))
            reports += inside
            if rewritten is not body.model:
                replaced[body.place] = rewritten
        changed = with_bodies(model, replaced)
        if any(report.pinned_for for report in reports):
            pin_dimensions(changed.graph, self.dimensions)
        return changed, tuple(reports)

    def _of_body(self, body: Body, budget_s: float | None) -> tuple[ModelProto, list[BodyReport]]:
        """The body itself where it stays as it is: it cannot be judged alone, nothing was found, or it got slower."""
        about = BodyReport(body.node, body.attribute)
        inside = self._inside(body.model, about)
        try:
            if not inside._may_find(body.model):
                return body.model, [replace(about, left_because=NOTHING_FOUND)]
            made = inside.of(body.model, budget_s)
        except EquivalenceError as error:
            raise EquivalenceError(f"in {about.place}, {error}") from None
        except RLFlowError as error:
            return body.model, [replace(about, left_because=str(error))]
        about = replace(about, optimisation_s=made.result.wall_time_s, real_interactions=made.result.interactions)
        if not made.latency:
            return body.model, [replace(about, left_because=made.unjudgeable or NOTHING_FOUND)]
        if is_slower(made.latency, self.setting):
            return body.model, [replace(about, left_because="the rewritten one was slower beyond noise")]
        done = replace(
            about,
            steps=made.steps,
            pinned_for=made.settled.pinned_for,
            cost_before_ms=made.result.start_ms,
            cost_after_ms=made.result.best_ms,
        )
        return made.candidate, [*made.inside, done]

    def _inside(self, body: ModelProto, about: BodyReport) -> Rewriting:
        """The same for a body, which must keep the opset of the graph around it."""
        symbols = symbolic_dimensions(body)

        def on_progress(done: float, text: str) -> None:
            if self.on_progress:
                self.on_progress(done, f"{about.place}: {text}")

        return replace(
            self,
            library=Library(()),
            delivery=replace(self.delivery, dimensions=_of_these(self.delivery.dimensions or {}, symbols)),
            dimensions=_of_these(self.dimensions, symbols),
            on_progress=on_progress,
        )

    def _delivered(self, found: Rewritten, model: ModelProto, changed: ModelProto, name: str) -> Rewritten:
        """Exported, compared with the model and timed against it. Steps start from `changed`, which may have a file."""
        candidate = to_onnx(found.settled.last)
        check_model(candidate)
        steps = (found.settled.start, found.settled.trajectory, self.method.rewriter)
        derivation = Derivation(model, candidate, *steps, name or changed, dimensions=self.delivery.dimensions)
        equivalence = check(derivation, self.delivery, self.reproducer)
        return replace(found, candidate=candidate, equivalence=equivalence, latency=self._timed(model, candidate))

    def _timed(self, model: ModelProto, candidate: ModelProto) -> dict[Setting, LatencyChange]:
        def on_round(done: int) -> None:
            if self.on_progress:
                self.on_progress(done / self.delivery.rounds, "timing the result against the original")

        models = {"original": model, "candidate": candidate}
        return latency_changes(time_models(models, self.delivery, on_round), "original", "candidate")


def _share(budget_s: float | None, nodes: int, model: ModelProto) -> float | None:
    """What falls to so many of the nodes of a model, those of its bodies included."""
    return None if budget_s is None else budget_s * max(nodes, 1) / max(size(model.graph), 1)


def _of_these(sizes: Mapping[str, int], symbols: list[str]) -> dict[str, int]:
    return {name: size for name, size in sizes.items() if name in symbols}
