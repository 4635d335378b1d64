"""Figures that several studies publish, and how they are made of times and of the values of seeds.

Median.over([row["training_s"] for row in rows])               the same figure of several seeds
MeasuredRatio.of(times_ms["original"], times_ms["found"])      the same models in several rounds
nested({("bert", "greedy"): row})["bert"]["greedy"]            rows by the parts of their keys
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Generic, Self, TypeVar

import numpy as np

from rlflow.runtime.timing.statistics import estimate, ratio
from rlflow.schemas.figures import NOT_EMPTY, Cases, Document, Interval, Load, Milliseconds, Ratio

T = TypeVar("T")


class Settings(Document, Generic[T]):
    """The same figures in each setting of ONNX Runtime."""

    as_written: T
    deployed: T


class MeasuredRatio(Document):
    """A ratio of latencies with its interval."""

    value: Ratio
    ci95: Interval

    @classmethod
    def of(cls, reference_ms: np.ndarray, other_ms: np.ndarray) -> Self:
        """The median over rounds of reference over other, both (rounds,)."""
        found = ratio(reference_ms, other_ms)
        return cls(found.value, found.ci95)


class Timed(Document):
    """The original, timed beside other models in one setting of ONNX Runtime."""

    original_over_original: MeasuredRatio
    """Two timings of the same model: the noise floor."""
    original_ms: Milliseconds
    """Median over the rounds."""
    rounds: Cases
    """Each with a fresh session of every model."""
    runs_per_round: Cases
    """At least, the fastest of which is a round's latency."""
    load: Load
    """Processes that ran or waited to run in the last minute, before the timing and after it; the timing itself is
    one.
    """


class Spread(Document):
    """A figure's median over seeds, with the value of each."""

    value: float
    ci95: Interval
    values: Annotated[list[float], NOT_EMPTY]
    """One for each seed."""

    @classmethod
    def over(cls, values: Sequence[float]) -> Self:
        """The values of all seeds, of which there is one at least."""
        found = estimate(values)
        return cls(found.value, found.ci95, list(values))


class Median(Document):
    """A figure over seeds."""

    value: float
    ci95: Interval
    cases: Cases

    @classmethod
    def over(cls, values: Sequence[float]) -> Self:
        """The values of all seeds that have one, which must be one at least."""
        found = estimate(values)
        return cls(value=found.value, ci95=found.ci95, cases=len(values))


def nested(rows: Mapping[tuple[Any, ...], Any]) -> dict[Any, Any]:
    """Return rows by the first part of their keys, below it by the second, and so on."""
    found: dict[Any, Any] = {}
    for (*outer, last), row in rows.items():
        place = found
        for part in outer:
            place = place.setdefault(part, {})
        place[last] = row
    return found
