"""Weights with NaN in them: what is computed of these is NaN, whatever the input is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rlflow.doctor.finding import Finding, counted
from rlflow.doctor.subject import Subject
from rlflow.subnormal.weights import weights_of

_NAMED = 3
_TEXTS = "OSU"  # kinds of arrays that hold strings


def not_numbers(subject: Subject) -> Iterator[Finding]:
    """Find them. Infinities are no finding: masks hold them by design."""
    counts = [(weight.name, _nan_count(weight.values())) for weight in weights_of(subject.model)]
    spoilt = [(name, count) for name, count in counts if count]
    if not spoilt:
        return
    named = ", ".join(name for name, _ in spoilt[:_NAMED]) + (", ..." if len(spoilt) > _NAMED else "")
    numbers = sum(count for _, count in spoilt)
    yield Finding(
        f"{counted(len(spoilt), 'weight')} ({named}) with NaN, {counted(numbers, 'number')} in all: what "
        "is computed of them is NaN, whatever the input is",
        "Look for a training that diverged, or for float16 that overflowed in a conversion, and export it again.",
    )


def _nan_count(values: np.ndarray) -> int:
    return 0 if values.dtype.kind in _TEXTS else int(np.isnan(values).sum())
