"""Floats of 16 bits that ONNX Runtime converts to 32 bits and back at every run, for want of kernels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median

from rlflow.doctor.finding import Finding
from rlflow.doctor.subject import Subject
from rlflow.equivalence.tolerance import coarsest_epsilon
from rlflow.ops import registry
from rlflow.runtime.kernel_runs import KernelRun, kernel_runs

_HALF = 2.0**-10
"""The epsilon of float16; that of bfloat16 is larger."""
_RUNS = 5
_LEAST_SHARE = 0.05
_CONVERTING = registry.types_having(lambda traits: traits.converts)


def half_precision(subject: Subject) -> Iterator[Finding]:
    """Find the share of the kernels' time that goes into conversions."""
    if coarsest_epsilon(subject.model) < _HALF:
        return
    kernels = kernel_runs(subject.file, subject.inputs, runs=_RUNS)
    a_run = len(kernels) // _RUNS
    # The median over runs: what interrupts a kernel once says nothing of the others.
    share = median(_converting_share(kernels[number * a_run : (number + 1) * a_run]) for number in range(_RUNS))
    if share >= _LEAST_SHARE:
        conversions = sum(each.operator in _CONVERTING for each in kernels[:a_run])
        yield Finding(
            f"It has floats of 16 bits, and {100 * share:.0f} % of the time goes into {conversions} conversions a run",
            "Export it in float32 for this processor; its file is twice as large then, and its outputs are nearer to "
            "the trained model's.",
        )


def _converting_share(run: Sequence[KernelRun]) -> float:
    """The share of a run's time in which kernels convert."""
    return sum(each.us for each in run if each.operator in _CONVERTING) / max(1, sum(each.us for each in run))
