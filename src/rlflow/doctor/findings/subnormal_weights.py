"""Weights with subnormal numbers, which may take an Intel processor a hundred times as long (`rlflow.subnormal`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from rlflow.doctor.finding import Finding, counted
from rlflow.doctor.subject import NotLookedFor, Subject
from rlflow.equivalence.report import EquivalenceReport
from rlflow.onnx_io.external_data import write_mapped
from rlflow.optimise.flushing import NEEDED, NO_SUMS, proven
from rlflow.optimise.reported.latency import LatencyChange
from rlflow.subnormal.flush import Decayed, decayed, multiplied
from rlflow.subnormal.trial import error_of

_SLOW = "processors of Intel may take a hundred times as long with them, and others hardly longer"


def subnormal_weights(subject: Subject) -> Iterator[Finding]:
    """Find them, prove which are harmless, and time the model without these."""
    found = decayed(subject.model)
    if not found.all:
        return
    subject.reference  # noqa: B018 - without it nothing is proven
    kept: tuple[Decayed, ...] = ()
    report: EquivalenceReport | None = None
    if found.weights:
        kept, report = proven(found, subject.model, subject.file, subject.judgement, subject.config, subject.deadline)
    if report is not None:
        flushed = multiplied(subject.model, kept, 0.0)
        file = write_mapped(flushed, subject.file.with_name("flushed.onnx"), like=subject.file)
        bound = sum(each.magnitude for each in kept)
        yield Finding(
            found=f"{_told(kept)}: {_SLOW}. At zero, a sum of products loses at most {bound:.1e} times its "
            f"largest operand, and the outputs differ by {error_of(report):.1e} of their largest value",
            advice="Set them to zero, as `-o` does here and `rlflow optimise` by itself, and train with a weight decay "
            "that ends there.",
            effect=_effect(subject, file),
            remedy=flushed,
        )
    left = tuple(each for each in found.all if each not in kept)
    if left:
        because = NO_SUMS if all(each in found.left for each in left) else NEEDED
        yield Finding(
            found=f"{_told(left)}: {_SLOW}. They stay as they are, since {because}",
            advice="Look at where they come from: an epsilon of 1e-45 may be one of 1e-30 as well.",
        )


def _effect(subject: Subject, flushed: Path) -> LatencyChange | None:
    """The latency beside the model without them; None if a round of it takes longer than there is time."""
    try:
        return subject.compared_with(flushed)
    except NotLookedFor:
        return None


def _told(weights: tuple[Decayed, ...]) -> str:
    numbers, subnormal = (sum(getattr(each, name) for each in weights) for name in ("numbers", "subnormal"))
    named = ", ".join(each.name for each in weights[:3]) + (", ..." if len(weights) > 3 else "")
    others = f" and {numbers - subnormal} nearly so" if numbers > subnormal else ""
    verb = "is" if subnormal == 1 else "are"
    return f"In {counted(len(weights), 'weight')} ({named}), {counted(subnormal, 'number')} {verb} subnormal{others}"
