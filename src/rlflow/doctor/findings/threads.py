"""The number of threads inside an operator: one, half of the cores, or all of them, as ONNX Runtime does it."""

from __future__ import annotations

from collections.abc import Iterator

from rlflow.doctor.finding import Finding, counted
from rlflow.doctor.subject import NotLookedFor, Subject
from rlflow.optimise.session_options import fewer_threads


def threads(subject: Subject) -> Iterator[Finding]:
    """Time fewer threads beside all of them, by the clock on the wall."""
    most = subject.threads
    if most == 1:
        raise NotLookedFor("there is one core")
    told, best = [], None
    for options in fewer_threads(most):
        change = subject.compared(subject.opener(threads=most), subject.opener(options), threads=most)
        verb = "is" if options.intra_op_num_threads == 1 else "are"
        fewer = counted(options.intra_op_num_threads, "thread")
        told.append(f"{fewer} {verb} {change.verdict.ratio:.2f} times as fast as {most}")
        is_best = best is None or change.verdict.ratio > best[1].verdict.ratio
        if change.verdict.decision == "faster" and is_best:
            best = options, change
    found = f"On the wall clock, beside what else runs here, {', '.join(told)}"
    if best is None:
        yield Finding(found)
        return
    options, change = best
    yield Finding(found, f"Open its session with {options}; the other cores are free then.", change)
