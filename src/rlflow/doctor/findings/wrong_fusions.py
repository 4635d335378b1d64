"""Optimisers of ONNX Runtime with which a model does not open, or computes something else than as written.

An example (microsoft/onnxruntime#32416): Mul reads a Cast that changes nothing, and 1 / w. DivMulFusion joins Div and
Mul, CastElimination drops the Cast, and then no node makes what the Div reads. Without either, the model opens.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from onnx import ModelProto

from rlflow.doctor.finding import Finding
from rlflow.doctor.subject import NotLookedFor, Subject
from rlflow.equivalence.drawing import Reference
from rlflow.equivalence.fusions import is_right_without, lives_and_is_right_without, to_blame
from rlflow.equivalence.reference import reference_of
from rlflow.errors import RLFlowError
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.optimise.gate import limits_until
from rlflow.runtime.isolation import ProcessDeath, ProcessTimeout, call_isolated
from rlflow.runtime.session_options import SessionOptions

_NAMED = 3
"""More optimisers than these are not worth a list: none at all is the advice then."""


def wrong_fusions(subject: Subject) -> Iterator[Finding]:
    """Find the optimisers without which the model computes as deployed what it computes as written.

    A model that does not run as deployed is mended by writing its graph anew, without what does nothing, where that is
    enough.
    """
    report, is_run = subject.judgement.report, subject.judgement.reference is not None
    if is_run and not (report.differs_by_setting and report.own_setting == "deployed"):
        return
    expected = _as_written(subject)
    if not (blamed := _to_blame(subject, expected)):
        return
    is_short = len(blamed) <= _NAMED
    options = SessionOptions(disabled_optimizers=blamed) if is_short else _UNOPTIMISED
    culprit = f"its {' and '.join(blamed)}" if is_short else "its optimisation"
    advice, remedy = f"Open its session with {options}.", None
    if is_run:
        found = f"ONNX Runtime computes something else because of {culprit}: {report.own_difference}"
    else:
        found = f"ONNX Runtime runs it as written, and cannot as deployed because of {culprit}"
        remedy = _written_anew(subject, expected)
        advice += " What `-o` writes opens as it is." if remedy is not None else ""
    yield Finding(found, advice, remedy=remedy)


_UNOPTIMISED = SessionOptions(graph_optimization_level="ORT_DISABLE_ALL")


def _as_written(subject: Subject) -> Reference:
    """Run the model as written. `NotLookedFor` if it does not run so either."""
    config, limits = subject.config, limits_until(subject.config, subject.deadline)
    asked = partial(reference_of, draws=config.draws, seed=config.seed, dimensions=config.dimensions)
    try:
        return call_isolated(limits, asked, subject.file, ("as_written",)).ordinary
    except ProcessTimeout:
        raise
    except RLFlowError:
        raise NotLookedFor(subject.judgement.unjudgeable) from None


def _to_blame(subject: Subject, expected: Reference) -> tuple[str, ...]:
    """Ask in one other process, or each question in one of its own where that dies, until the deadline."""
    limits = limits_until(subject.config, subject.deadline)

    def lives_and_helps(*asked: Any) -> bool:
        left = limits_until(subject.config, subject.deadline)
        return not subject.deadline.is_over and lives_and_is_right_without(left, *asked)

    question = subject.file, expected.inputs, expected.outputs, subject.judgement.report.tolerance
    try:
        return call_isolated(limits, to_blame, *question)
    except ProcessTimeout:
        raise
    except ProcessDeath:
        return to_blame(*question, lives_and_helps)


def _written_anew(subject: Subject, expected: Reference) -> ModelProto | None:
    """The model as it is written from its graph; None if that does not open either, or computes something else."""
    limits, tolerance = limits_until(subject.config, subject.deadline), subject.judgement.report.tolerance
    try:
        model = to_onnx(from_onnx(subject.model))
        is_right = call_isolated(limits, is_right_without, model, (), expected.inputs, expected.outputs, tolerance)
    except RLFlowError:
        return None
    return model if is_right else None
