"""Floats of 16 bits that take longer than those of 32: a CPU without kernels for them converts them again and again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from onnx import TensorProto

from rlflow.doctor.finding import Finding
from rlflow.doctor.subject import NotLookedFor, Subject
from rlflow.equivalence.drawing import Inputs
from rlflow.equivalence.float64 import HALVES, Widening
from rlflow.equivalence.tolerance import coarsest_epsilon
from rlflow.errors import RLFlowError
from rlflow.onnx_io.external_data import settled, write_mapped
from rlflow.optimise.gate import limits_until
from rlflow.runtime.isolation import ProcessTimeout, call_isolated
from rlflow.runtime.session import open_session, run
from rlflow.runtime.timing.latency import session_opener

_HALF = 2.0**-10
"""The epsilon of float16; that of bfloat16 is larger."""


def half_precision(subject: Subject) -> Iterator[Finding]:
    """Time the model beside the same in float32, which takes float32 inputs."""
    if coarsest_epsilon(subject.model) < _HALF:
        return
    wide = Widening(HALVES, TensorProto.FLOAT).of(settled(subject.model))
    file = write_mapped(wide, subject.file.with_name("wide.onnx"))
    inputs = {name: _widened(value) for name, value in subject.inputs.items()}
    try:
        call_isolated(limits_until(subject.config, subject.deadline), _run_once, file, inputs)
    except ProcessTimeout:
        raise
    except RLFlowError as error:
        raise NotLookedFor(f"it does not run in float32: {error}") from None
    change = subject.compared(subject.opener(), session_opener(file, "deployed", 1, inputs))
    if change.verdict.decision == "faster":
        yield Finding(
            "It computes in floats of 16 bits, for which this processor has no kernels that are faster",
            "Export it in float32 for this processor; its file is twice as large then, and its outputs are nearer to "
            "the trained model's.",
            change,
        )


def _widened(value: np.ndarray) -> np.ndarray:
    return value.astype(np.float32) if value.dtype.name in ("float16", "bfloat16") else value


def _run_once(file: Path, inputs: Inputs) -> None:
    run(open_session(file, "deployed"), inputs)
