"""The first move: what whole-graph passes of public libraries make of a model, before any rule is tried.

    moved = FirstMove("onnx").of(model, graph_of, cost_model, deadline)
    moved.model, moved.report.passes

Tried are the pipelines of the libraries, the best public chain of them and a fixpoint of simplifiers. From the cheapest
of these it goes on by the single pass that saves most, again and again. A library runs in a process of its own
(`rlflow.passes.worker`): one that fails, crashes or never ends costs time and nothing else.

Invariant: the very model comes out unless another one is cheaper, by the prices that the search goes by; and that one
has the same inputs, outputs, metadata and IR version.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import takewhile

from onnx import ModelProto

from rlflow.cost.base import CostModel, MeasuringCostModel, least_change_ms
from rlflow.errors import InputError, RLFlowError
from rlflow.ir.graph import Graph
from rlflow.method import OnProgress
from rlflow.onnx_io.external_data import MESSAGE_LIMIT_BYTES, inside_bytes, outside_bytes
from rlflow.optimise import PASS_BACKENDS
from rlflow.optimise.clock import Deadline
from rlflow.optimise.refusal import Refusal
from rlflow.optimise.reported.passes import PassesReport
from rlflow.passes import search
from rlflow.passes.backend import Catalogue, Facts
from rlflow.passes.search import Found
from rlflow.passes.transitions import Transitions
from rlflow.passes.worker import Limits, WorkerBackend

GraphOf = Callable[[ModelProto], Graph]

NO_TIME = "the time was over before any was run"
NOT_CHEAPER = "none lowered its predicted cost"
UNPRICED = "the time was over before the model itself was priced"
TOO_LARGE = "it has more than 2 GB, which none can read"
HAS_DEFAULTS = "it has an input with a default value, which they would make a constant"

_NOISE_FREE_GAIN = 1e-9  # relative; below it lies only the rounding of sums of prices
_FIRST_IR_VERSION_WITH_DEFAULTS = 4  # before, weights had to be listed among the inputs


@dataclass(frozen=True)
class Moved:
    """The model after the passes of the report; the very one that was given where there are none.

    `refusals` are about what other passes made.
    """

    model: ModelProto
    report: PassesReport
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class FirstMove:
    """The passes of a backend but those `excluded`. `InputError` for a backend whose programs are no ONNX models."""

    backend: str = PASS_BACKENDS[0]
    excluded: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        if self.backend not in PASS_BACKENDS:
            raise InputError(f"passes of {self.backend!r} make no ONNX model: choose {' or '.join(PASS_BACKENDS)}")

    def excluding(self, passes: Iterable[str]) -> FirstMove:
        """Return the same without some passes, or pipelines of them."""
        return replace(self, excluded=self.excluded.union(passes))

    def of(
        self,
        model: ModelProto,
        graph_of: GraphOf,
        cost_model: CostModel,
        deadline: Deadline,
        on_progress: OnProgress | None = None,
    ) -> Moved:
        """Return what is cheapest of what passes make of a model by the deadline; the caller must compare it.

        graph_of: the graph of a model as it is to be priced.
        """
        if because := _unreadable(model) or (NO_TIME if deadline.is_over else ""):
            return Moved(model, PassesReport(self.backend, left_because=because))
        started = time.perf_counter()
        walk = _Walk(graph_of, cost_model, deadline, on_progress, self.excluded)
        limits = Limits(left_s=lambda: deadline.left_s)
        with WorkerBackend(self.backend, limits) as backend:
            try:
                walk.go(model, backend)
            except RLFlowError as error:  # what was found before is as good as ever
                because = str(error)
        report = PassesReport(self.backend, tried=walk.tried, wall_time_s=time.perf_counter() - started)
        return _moved(model, walk, report, because)


def none_taken(model: ModelProto, moved: Moved, refusals: tuple[Refusal, ...]) -> Moved:
    """The very model, where all that there was time for was refused."""
    because = f"after {', '.join(moved.report.passes)}, it {refusals[-1].reason}"
    before_ms = moved.report.cost_before_ms
    report = replace(moved.report, passes=(), domains=(), cost_after_ms=before_ms, left_because=because)
    return Moved(model, report, refusals)


@dataclass(frozen=True)
class _State:
    """A program, the passes that lead to it, and its price."""

    key: str
    passes: tuple[str, ...]
    graph: Graph
    runtime_ms: float
    payload: bytes


class _Walk:
    """From program to program, each priced once. `begun` is the model itself, and `best` the cheapest so far."""

    def __init__(
        self,
        graph_of: GraphOf,
        cost_model: CostModel,
        deadline: Deadline,
        on_progress: OnProgress | None,
        excluded: frozenset[str],
    ) -> None:
        self.graph_of, self.cost_model = graph_of, cost_model
        self.deadline, self.on_progress, self.excluded = deadline, on_progress, excluded
        self.begun: _State | None = None
        self.best: _State | None = None
        self.tried = 0
        self._priced: set[str] = set()

    def go(self, model: ModelProto, backend: WorkerBackend) -> None:
        """Look for something cheaper than the model, until nothing is or the time is over."""
        graph = self.graph_of(model)
        runtime_ms = self._runtime_ms(graph)
        if runtime_ms is None:
            return
        with closing(Transitions(backend)) as transitions:
            try:
                self._go_from(model, graph, runtime_ms, transitions)
            finally:
                self.tried = transitions.misses

    def _go_from(self, model: ModelProto, graph: Graph, runtime_ms: float, transitions: Transitions) -> None:
        start = transitions.start(model.SerializeToString())
        self.begun = self.best = _State(start.key, (), graph, runtime_ms, b"")
        self._priced.add(start.key)
        known = transitions.backend.catalogue()
        self._take_cheapest(transitions, self._ready_made(transitions, start, known))
        before = None
        while self.best is not before:
            before = self.best
            self._take_cheapest(transitions, _single(transitions, before, self._admitted(known.passes)))

    def _ready_made(self, transitions: Transitions, start: Facts, known: Catalogue) -> Iterator[Found]:
        for name in self._admitted(known.pipelines):
            yield search.sequence(transitions, start, [name])
        yield search.sequence(transitions, start, self._in_time(known.chain))
        round_of = Found(start)
        while not self.deadline.is_over:  # the fixpoint of simplifiers, whose rounds take long
            more = search.sequence(transitions, round_of.facts, self._in_time(known.simplifiers))
            round_of = Found(more.facts, round_of.passes + more.passes)
            yield round_of
            if not more.passes:
                break

    def _in_time(self, names: tuple[str, ...]) -> Iterator[str]:
        return takewhile(lambda _: not self.deadline.is_over, self._admitted(names))

    def _admitted(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if name not in self.excluded]

    def _take_cheapest(self, transitions: Transitions, options: Iterator[Found]) -> None:
        """Go on to the cheapest of the options that there is time for, if it is cheaper than the best."""
        while not self.deadline.is_over:
            found = next(options, None)
            if found is None:
                break
            if found.facts.key not in self._priced:
                self._priced.add(found.facts.key)
                self._price(found, transitions.payload(found.facts.key))
            if self.on_progress and self.best is not None:
                told = ", ".join(self.best.passes) or "no pass"
                self.on_progress(0.0, f"{self.best.runtime_ms:.3f} ms after {told}")

    def _price(self, found: Found, payload: bytes) -> None:
        """Make it the best if it is cheaper; what cannot be read as a graph has no price."""
        try:
            graph = self.graph_of(ModelProto.FromString(payload))
            runtime_ms = self._runtime_ms(graph)
        except RLFlowError:
            return
        if runtime_ms is not None and self.best is not None and self._is_cheaper(self.best, graph, runtime_ms):
            self.best = _State(found.facts.key, found.passes, graph, runtime_ms, payload)

    def _runtime_ms(self, graph: Graph) -> float | None:
        """The price of a graph; None if there is no time to measure it."""
        if isinstance(self.cost_model, MeasuringCostModel):
            if self.cost_model.measure([graph], time.perf_counter() + self.deadline.left_s):
                return None
        return self.cost_model.runtime_ms(graph)

    def _is_cheaper(self, best: _State, graph: Graph, runtime_ms: float) -> bool:
        """True if it is by more than rounding, and by more than what may be noise."""
        gain_ms = best.runtime_ms - runtime_ms
        least_ms = least_change_ms(self.cost_model, best.graph, graph)
        return gain_ms > _NOISE_FREE_GAIN * best.runtime_ms and gain_ms >= least_ms


def _single(transitions: Transitions, state: _State, names: Iterable[str]) -> Iterator[Found]:
    for name in names:
        outcome = transitions.step(state.key, name)
        yield Found(outcome.facts, (*state.passes, name))


def _unreadable(model: ModelProto) -> str:
    """The reason why no pass may have this model, or ""."""
    if inside_bytes(model) + outside_bytes(model) > MESSAGE_LIMIT_BYTES:
        return TOO_LARGE
    weights = {tensor.name for tensor in model.graph.initializer}
    has_defaults = any(value.name in weights for value in model.graph.input)
    return HAS_DEFAULTS if has_defaults and model.ir_version >= _FIRST_IR_VERSION_WITH_DEFAULTS else ""


def _moved(model: ModelProto, walk: _Walk, report: PassesReport, because: str) -> Moved:
    """Report on a walk, which may have ended early with a reason."""
    if walk.begun is None or walk.best is None:
        return Moved(model, replace(report, left_because=because or UNPRICED))
    report = replace(report, cost_before_ms=walk.begun.runtime_ms, cost_after_ms=walk.best.runtime_ms)
    if walk.best is walk.begun:
        return Moved(model, replace(report, left_because=because or NOT_CHEAPER))
    made = _described_as(model, ModelProto.FromString(walk.best.payload))
    domains = {opset.domain for opset in made.opset_import} - {opset.domain for opset in model.opset_import} - {""}
    return Moved(made, replace(report, passes=walk.best.passes, domains=tuple(sorted(domains))))


def _described_as(original: ModelProto, made: ModelProto) -> ModelProto:
    """Give back what passes drop or change although nothing computes with it."""
    for name in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        setattr(made, name, getattr(original, name))
    made.metadata_props.extend(original.metadata_props)
    made.graph.name = original.graph.name
    if original.ir_version >= _FIRST_IR_VERSION_WITH_DEFAULTS:
        made.ir_version = original.ir_version
    return made
