"""Floats of 16 bits that ONNX Runtime converts to 32 bits and back at every run, for want of kernels."""

from __future__ import annotations

from collections.abc import Iterator

from rlflow.doctor.finding import Finding
from rlflow.doctor.subject import Subject
from rlflow.equivalence.tolerance import coarsest_epsilon
from rlflow.ops import registry
from rlflow.runtime.kernel_runs import kernel_runs

_HALF = 2.0**-10
"""The epsilon of float16; that of bfloat16 is larger."""
_RUNS = 5
_LEAST_SHARE = 0.05
_CONVERTING = registry.types_having(lambda traits: traits.converts)


def half_precision(subject: Subject) -> Iterator[Finding]:
    """Find the share of the kernels' time that goes into conversions."""
    if coarsest_epsilon(subject.model) < _HALF:
        return
    runs = kernel_runs(subject.file, subject.inputs, runs=_RUNS)
    total, converting = sum(each.us for each in runs), [each for each in runs if each.operator in _CONVERTING]
    share = sum(each.us for each in converting) / max(total, 1)
    if share >= _LEAST_SHARE:
        yield Finding(
            f"It has floats of 16 bits, and {100 * share:.0f} % of the time goes into {len(converting) // _RUNS} "
            "conversions a run",
            "Export it in float32 for this processor; its file is twice as large then, and its outputs are nearer to "
            "the trained model's.",
        )
