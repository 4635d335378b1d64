"""Weights with NaN in them: what is computed of these is NaN, whatever the input is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rlflow.doctor.finding import Finding, counted
from rlflow.doctor.subject import Subject
from rlflow.subnormal.weights import weights_of

_NAMED = 3


def not_numbers(subject: Subject) -> Iterator[Finding]:
    """Find them. Infinities are no finding: masks hold them by design."""
    weights = {weight.name: int(np.isnan(weight.values()).sum()) for weight in weights_of(subject.model)}
    spoilt = [name for name, count in weights.items() if count]
    if not spoilt:
        return
    named = ", ".join(spoilt[:_NAMED]) + (", ..." if len(spoilt) > _NAMED else "")
    yield Finding(
        f"{counted(len(spoilt), 'weight')} ({named}) with NaN, {counted(sum(weights.values()), 'number')} in all: what "
        "is computed of them is NaN, whatever the input is",
        "Look for a training that diverged, or for float16 that overflowed in a conversion, and export it again.",
    )
