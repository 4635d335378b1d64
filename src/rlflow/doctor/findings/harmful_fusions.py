"""Optimisations of ONNX Runtime that make the model slower, found by switching them off.

First all of them at once, then those that change which kernels run, one by one: an optimiser without which the same
kernels run does nothing here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rlflow.doctor.finding import Finding
from rlflow.doctor.profiled import kernel_runs
from rlflow.doctor.subject import NotLookedFor, Subject
from rlflow.runtime.timing.latency import Opener, session_opener
from rlflow.runtime.transformers import OPTIMISERS


class _Choice(NamedTuple):
    """A way to open the model in which less of it is optimised."""

    found: str
    advice: str
    opener: Opener


def harmful_fusions(subject: Subject) -> Iterator[Finding]:
    """Time the model without any optimisation, and without each optimiser that does something to it."""
    usual, best = subject.opener(), None
    for choice in _choices(subject):
        try:
            change = subject.compared(usual, choice.opener)
        except NotLookedFor:
            if best is None:
                raise
            break
        if change.verdict.decision == "faster" and (best is None or change.verdict.ratio > best[1].verdict.ratio):
            best = choice, change
    if best is not None:
        choice, change = best
        yield Finding(choice.found, choice.advice, change)


def _choices(subject: Subject) -> Iterator[_Choice]:
    yield _Choice(
        "ONNX Runtime's own optimisation makes it slower",
        "Open its session with graph_optimization_level = ORT_DISABLE_ALL.",
        session_opener(subject.file, "as_written", subject.config.threads, subject.inputs),
    )
    for name in at_work(subject, OPTIMISERS, kernels(subject, ())):
        yield _Choice(
            f"The optimiser {name} of ONNX Runtime makes it slower",
            f'Open its session with disabled_optimizers=["{name}"].',
            subject.opener(switched_off=[name]),
        )


def at_work(subject: Subject, names: Sequence[str], usual: Counter[str]) -> Iterator[str]:
    """Yield the optimisers without which other kernels run: groups of which that is not so are left out at once."""
    if not names or subject.deadline.is_over or kernels(subject, names) == usual:
        return
    if len(names) == 1:
        yield names[0]
        return
    half = len(names) // 2
    yield from at_work(subject, names[:half], usual)
    yield from at_work(subject, names[half:], usual)


def kernels(subject: Subject, switched_off: Sequence[str]) -> Counter[str]:
    """The operators of a run, by how often each ran."""
    return Counter(each.operator for each in kernel_runs(subject, switched_off))
