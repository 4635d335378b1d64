"""Optimisations of ONNX Runtime that make the model slower, found by switching them off.

First all of them at once, then those that change which kernels run, one by one: an optimiser without which the same
kernels run does nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator

from rlflow.doctor.finding import Finding
from rlflow.doctor.subject import NotLookedFor, Subject
from rlflow.optimise.session_options import less_optimised


def harmful_fusions(subject: Subject) -> Iterator[Finding]:
    """Time the model without any optimisation, and without each optimiser that does something to it."""
    usual, best = subject.opener(), None
    for options in less_optimised(subject.file, subject.inputs, lambda: subject.deadline.is_over):
        try:
            change = subject.compared(usual, subject.opener(options))
        except NotLookedFor:
            if best is None:
                raise
            break
        if change.verdict.decision == "faster" and (best is None or change.verdict.ratio > best[1].verdict.ratio):
            best = options, change
    if best is not None:
        options, change = best
        names = ", ".join(options.disabled_optimizers)
        what = f"The optimiser {names} of ONNX Runtime" if names else "ONNX Runtime's own optimisation"
        yield Finding(f"{what} makes it slower", f"Open its session with {options}.", change)
