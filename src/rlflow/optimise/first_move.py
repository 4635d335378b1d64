"""The first move: what whole-graph passes of public libraries make of a model, before any rule is tried.

    moved = FirstMove("onnx").of(model, graph_of, cost_model, deadline)
    moved.model, moved.report.passes

Tried are the pipelines of the libraries, the best public chain of them and a fixpoint of simplifiers. From the cheapest
of these it goes on by the single pass that saves most, again and again. A library runs in a process of its own
(`rlflow.passes.worker`): one that fails, crashes or never ends costs time and nothing else.

Invariant: the very model comes out unless another one is cheaper, by the prices that the search goes by.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from onnx import ModelProto

from rlflow.cost.base import CostModel, least_change_ms
from rlflow.errors import InputError, RLFlowError
from rlflow.ir.graph import Graph
from rlflow.onnx_io.external_data import MESSAGE_LIMIT_BYTES
from rlflow.optimise import PASS_BACKENDS
from rlflow.optimise.clock import Deadline
from rlflow.optimise.report import PassesReport
from rlflow.optimiser import OnProgress
from rlflow.passes import search
from rlflow.passes.backend import Facts
from rlflow.passes.search import Found
from rlflow.passes.transitions import Transitions
from rlflow.passes.worker import Limits, WorkerBackend

GraphOf = Callable[[ModelProto], Graph]

NO_TIME = "the budget was over before any pass was run"
NOT_CHEAPER = "none lowered its predicted cost"
TOO_LARGE = "it has more than 2 GB, which no pass can read"

_LONGEST_PASS_S = 60.0
_NOISE_FREE_GAIN = 1e-9  # relative; below it lies only the rounding of sums of prices


@dataclass(frozen=True)
class Moved:
    """The model after the passes of the report; the very one that was given where there are none."""

    model: ModelProto
    report: PassesReport


@dataclass(frozen=True)
class FirstMove:
    """The passes of a backend. `InputError` for one whose programs are no ONNX models."""

    backend: str = PASS_BACKENDS[0]

    def __post_init__(self) -> None:
        if self.backend not in PASS_BACKENDS:
            raise InputError(f"passes of {self.backend!r} make no ONNX model: choose {' or '.join(PASS_BACKENDS)}")

    def of(
        self,
        model: ModelProto,
        graph_of: GraphOf,
        cost_model: CostModel,
        deadline: Deadline,
        on_progress: OnProgress | None = None,
    ) -> Moved:
        """Return what is cheapest of what passes make of a model by the deadline; whoever takes it must compare it.

        graph_of: the graph of a model as it is to be priced.
        """
        started, nothing = time.perf_counter(), PassesReport(self.backend)
        if model.ByteSize() > MESSAGE_LIMIT_BYTES:
            return Moved(model, replace(nothing, left_because=TOO_LARGE))
        if deadline.is_over:
            return Moved(model, replace(nothing, left_because=NO_TIME))
        limits = Limits(min(_LONGEST_PASS_S, deadline.left_s), min(Limits.longest_s, deadline.left_s))
        with WorkerBackend(self.backend, limits) as backend:
            walk = _Walk(Transitions(backend), graph_of, cost_model, deadline, on_progress)
            try:
                begun, best = walk.best(model)
            except RLFlowError as error:
                return Moved(model, replace(nothing, left_because=str(error)))
            report = replace(
                nothing,
                passes=best.passes,
                tried=walk.transitions.misses,
                cost_before_ms=begun.runtime_ms,
                cost_after_ms=best.runtime_ms,
                wall_time_s=time.perf_counter() - started,
            )
            if best is begun:
                return Moved(model, replace(report, left_because=NOT_CHEAPER))
            return Moved(ModelProto.FromString(walk.transitions.payload(best.key)), report)


def refused(report: PassesReport, difference: str) -> PassesReport:
    """The report on passes whose result computes something else, of which nothing is taken."""
    return replace(report, passes=(), cost_after_ms=report.cost_before_ms, left_because=difference)


@dataclass(frozen=True)
class _State:
    """A program by its key, the passes that lead to it, and its price."""

    key: str
    passes: tuple[str, ...]
    graph: Graph
    runtime_ms: float


class _Walk:
    """From program to program, each priced once."""

    def __init__(
        self,
        transitions: Transitions,
        graph_of: GraphOf,
        cost_model: CostModel,
        deadline: Deadline,
        on_progress: OnProgress | None,
    ) -> None:
        self.transitions, self.graph_of, self.cost_model = transitions, graph_of, cost_model
        self.deadline, self.on_progress = deadline, on_progress
        self._priced: dict[str, tuple[Graph, float] | None] = {}

    def best(self, model: ModelProto) -> tuple[_State, _State]:
        """The state of the model itself, and the cheapest that is met; the same one if none is cheaper."""
        start = self.transitions.start(model.SerializeToString())
        graph = self.graph_of(model)
        begun = _State(start.key, (), graph, self.cost_model.runtime_ms(graph))
        best = self._cheapest(begun, self._ready_made(start))
        while True:
            further = self._cheapest(best, self._single(best))
            if further is best:
                return begun, best
            best = further

    def _ready_made(self, start: Facts) -> Iterator[Found]:
        known = self.transitions.backend.catalogue()
        for name in known.pipelines:
            yield search.sequence(self.transitions, start, [name])
        yield search.sequence(self.transitions, start, known.chain)
        yield search.fixpoint(self.transitions, start, known.simplifiers)

    def _single(self, state: _State) -> Iterator[Found]:
        for name in self.transitions.backend.catalogue().passes:
            outcome = self.transitions.step(state.key, name)
            yield Found(outcome.facts, (*state.passes, name))

    def _cheapest(self, state: _State, options: Iterator[Found]) -> _State:
        """The cheapest of the state itself and the options that there is time for."""
        best = state
        while not self.deadline.is_over:
            found = next(options, None)
            if found is None:
                break
            priced = self._price(found.facts.key)
            if priced is not None and found.facts.key != state.key and self._is_cheaper(best, *priced):
                best = _State(found.facts.key, found.passes, *priced)
            if self.on_progress:
                self.on_progress(0.0, f"{best.runtime_ms:.3f} ms after {', '.join(best.passes) or 'no pass'}")
        return best

    def _price(self, key: str) -> tuple[Graph, float] | None:
        """The graph of a program and its price; None for one that cannot be read as a graph."""
        if key not in self._priced:
            try:
                graph = self.graph_of(ModelProto.FromString(self.transitions.payload(key)))
                self._priced[key] = graph, self.cost_model.runtime_ms(graph)
            except RLFlowError:
                self._priced[key] = None
        return self._priced[key]

    def _is_cheaper(self, best: _State, graph: Graph, runtime_ms: float) -> bool:
        """By more than rounding, and by more than what may be noise."""
        gain_ms = best.runtime_ms - runtime_ms
        least_ms = least_change_ms(self.cost_model, best.graph, graph)
        return gain_ms > _NOISE_FREE_GAIN * best.runtime_ms and gain_ms >= least_ms
