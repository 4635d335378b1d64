"""The number of threads inside an operator: one, half of the cores, or all of them, as ONNX Runtime does it."""

from __future__ import annotations

from collections.abc import Iterator

from rlflow.doctor.finding import Finding, counted
from rlflow.doctor.subject import NotLookedFor, Subject


def threads(subject: Subject) -> Iterator[Finding]:
    """Time fewer threads beside all of them, by the clock on the wall."""
    most = subject.threads
    if most == 1:
        raise NotLookedFor("there is one core")
    told, best = [], None
    for fewer in sorted({1, most // 2}):
        change = subject.compared(subject.opener(threads=most), subject.opener(threads=fewer), threads=most)
        verb = "is" if fewer == 1 else "are"
        told.append(f"{counted(fewer, 'thread')} {verb} {change.verdict.ratio:.2f} times as fast as {most}")
        is_best = best is None or change.verdict.ratio > best[1].verdict.ratio
        if change.verdict.decision == "faster" and is_best:
            best = fewer, change
    found = f"On the wall clock, beside what else runs here, {', '.join(told)}"
    if best is None:
        yield Finding(found)
        return
    fewer, change = best
    yield Finding(
        found, f"Open its session with intra_op_num_threads = {fewer}; the other cores are free then.", change
    )
