"""Finding what broke a model: the step, its rule, the values that it replaced and the fusion that it let in.

A step is found by bisection. Where the model is wrong only as deployed, the optimisers of ONNX Runtime that make it so
are found by switching them off.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import onnx
from onnx import ModelProto

from rlflow.equivalence.compare import compare
from rlflow.equivalence.drawing import Inputs, Reference
from rlflow.equivalence.fusions import is_right_without, lives_and_is_right_without, to_blame
from rlflow.equivalence.reference import reference_of
from rlflow.equivalence.report import EquivalenceReport
from rlflow.errors import RLFlowError
from rlflow.ir.graph import Graph
from rlflow.onnx_io import save_model, to_onnx
from rlflow.optimise import reproducer
from rlflow.optimise.reproducer import Pair, smallest_pair, whole_pair
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.isolation import Limits, ProcessDeath, call_isolated
from rlflow.trajectory.bisect import WrongStep, first_wrong_step
from rlflow.trajectory.minimise import minimise
from rlflow.trajectory.record import Trajectory

_SOURCE = "model.onnx"
_MINIMISING_S = 30.0
"""The time after which a trajectory is not shortened any further, nor another optimiser switched off."""


@dataclass(frozen=True)
class Derivation:
    """The way from `original` to `candidate`, which may hold at the sizes `dimensions` alone.

    The steps of `trajectory` start from `graph`. It is the graph of `source`: a model, or the argument by which a
    command takes its file. That is the original, or the original after passes and with subgraphs that were optimised
    before.
    """

    original: ModelProto | Path
    candidate: ModelProto | Path
    graph: Graph
    trajectory: Trajectory
    rewriter: Rewriter
    source: str | ModelProto = "MODEL"
    dimensions: Mapping[str, int] | None = None


@dataclass(frozen=True)
class Tried:
    """The report on a model that is not equivalent; `limits` bind others like it, where it has killed its process."""

    report: EquivalenceReport
    limits: Limits | None = None

    @property
    def differs(self) -> bool:
        """True if it runs and computes something else."""
        return self.report.is_run and not self.report.equivalent

    @property
    def problem(self) -> str:
        """The predicate of a sentence about the model."""
        return f"is {self.report.summary}" if self.report.is_run else f"could not be run: {self.report.reason}"


@dataclass(frozen=True)
class Cause:
    """The reason why a candidate is wrong, as a clause and by its parts (`rlflow.optimise.refusal.Refusal`)."""

    summary: str
    rules: tuple[str, ...] = ()
    step: int = 0
    fusions: tuple[str, ...] = ()
    reproducer: Path | None = None


def explain(derivation: Derivation, tried: Tried, reference: Reference, folder: Path | None) -> Cause:
    """Find what made a candidate wrong on the inputs of `reference`, with what the original computes on them.

    A reproducer is written to `folder`, if one is given. Models are run here, or where one has killed its process, in
    processes of their own.
    """
    witness = _witness(tried.report, reference)

    end_s = time.perf_counter() + _MINIMISING_S
    same = partial(compare, derivation.original, reference=witness, dimensions=derivation.dimensions)

    def is_wrong(graph: Graph) -> bool:
        if tried.limits is None:
            return not same(to_onnx(graph)).equivalent
        try:
            return not call_isolated(tried.limits, same, to_onnx(graph)).equivalent
        except ProcessDeath:
            return True

    def is_wrong_in_time(graph: Graph) -> bool:
        return time.perf_counter() < end_s and is_wrong(graph)

    wrong = None
    if not is_wrong(derivation.graph):
        wrong = first_wrong_step(derivation.graph, derivation.trajectory, derivation.rewriter, is_wrong)
    is_original = isinstance(derivation.source, str)
    start = "import or export" if is_original else "import, export, passes or a subgraph's rewrites"
    pair = _pair(derivation, tried, wrong, witness.inputs)
    fusions = _fusions(pair.after, tried, _expected(pair, tried, witness))
    what = f"it broke at {wrong or f'{start}: no step changes what it computes'}{_through(fusions)}"
    cause = Cause(what, (wrong.step.rule,) if wrong else (), wrong.number if wrong else 0, fusions)

    def write(into: Path) -> None:
        text = f"It {tried.problem}; {what}.{_remedy(fusions)}"
        if wrong is None:
            reproducer.write(into, text, pair)
            return
        broken = replace(derivation.trajectory, steps=derivation.trajectory.steps[: wrong.number])
        # Each of the many choices of steps is another model that may kill its process: then all of them are kept.
        is_kept = tried.limits is not None or time.perf_counter() >= end_s
        shortest = broken if is_kept else minimise(derivation.graph, broken, derivation.rewriter, is_wrong_in_time)
        _write_steps(into, text, pair, derivation, shortest, witness.inputs[0])

    return _with_reproducer(cause, folder, write)


def explain_made(original: Path, made: Path, tried: Tried, reference: Reference, folder: Path | None) -> Cause:
    """Find what made a model wrong that others have made of the original; a reproducer is written to `folder`."""
    witness = _witness(tried.report, reference)
    fusions = _fusions(made, tried, witness)
    what = f"it is wrong{_through(fusions)}" if fusions else ""

    def write(into: Path) -> None:
        pair = Pair(onnx.load(original), onnx.load(made), witness.inputs[0], "the original", "what passes made of it")
        reproducer.write(into, f"It {tried.problem}.{_remedy(fusions)}", pair)

    return _with_reproducer(Cause(what, fusions=fusions), folder, write)


def _witness(report: EquivalenceReport, reference: Reference) -> Reference:
    """The input on which the models differ most, or all of them where none is known to."""
    return reference if report.worst_draw is None else reference.only(report.worst_draw)


def _pair(derivation: Derivation, tried: Tried, wrong: WrongStep | None, witness: list[Inputs]) -> Pair:
    """The smallest models that show the difference."""
    if wrong is None:
        sides = (_loaded(derivation.original), _loaded(derivation.candidate))
        return Pair(*sides, witness[0], "the original", "the model that was made of it")
    return smallest_pair(wrong, witness) if tried.limits is None else whole_pair(wrong, witness)


def _expected(pair: Pair, tried: Tried, witness: Reference) -> Reference:
    """The outputs that the second model of a pair should compute, on the inputs of the pair."""
    if tried.limits or pair.inputs is witness.inputs[0]:
        return witness
    return reference_of(pair.before, ("as_written",), inputs=[pair.inputs])


def _fusions(model: ModelProto | Path, tried: Tried, expected: Reference) -> tuple[str, ...]:
    """The optimisers of ONNX Runtime that make the model wrong as deployed; none if it is wrong as written, too."""
    report = tried.report
    if tried.limits is None and report.worst_setting != "deployed":
        return ()
    end_s, limits = time.perf_counter() + _MINIMISING_S, tried.limits
    asked = is_right_without if limits is None else partial(lives_and_is_right_without, limits)

    def asked_in_time(*question: Any) -> bool:
        return time.perf_counter() < end_s and asked(*question)

    return to_blame(model, expected.inputs, expected.outputs, report.tolerance, asked_in_time)


def _through(fusions: Sequence[str]) -> str:
    return f", through ONNX Runtime's {' and '.join(fusions)}" if fusions else ""


def _remedy(fusions: Sequence[str]) -> str:
    """A sentence for a reproducer."""
    return f"\nIt is right with disabled_optimizers={list(fusions)}." if fusions else ""


def _with_reproducer(cause: Cause, folder: Path | None, write: Callable[[Path], None]) -> Cause:
    """Write a reproducer and say where it is; a folder that cannot be written does not hide the fault."""
    if folder is None:
        return cause
    known = f"{cause.summary}; " if cause.summary else ""
    try:
        write(folder)
    except (OSError, RLFlowError) as error:
        return replace(cause, summary=f"{known}no reproducer could be written to {folder} ({error})")
    return replace(cause, summary=f"{known}to see it again, read {folder / 'README.txt'}", reproducer=folder)


def _write_steps(
    folder: Path, text: str, pair: Pair, derivation: Derivation, shortest: Trajectory, inputs: Inputs
) -> None:
    """Write the pair and the steps that lead to it, with the model that they start from."""
    shapes = {name: value.shape for name, value in inputs.items() if value.shape} if derivation.dimensions else {}
    model = derivation.source if isinstance(derivation.source, str) else _SOURCE
    steps = len(derivation.trajectory.steps)
    reproducer.write(folder, text, pair, shortest=shortest, steps=steps, model=model, shapes=shapes)
    if isinstance(derivation.source, ModelProto):
        save_model(derivation.source, folder / _SOURCE)


def _loaded(model: ModelProto | Path) -> ModelProto:
    return model if isinstance(model, ModelProto) else onnx.load(model)
