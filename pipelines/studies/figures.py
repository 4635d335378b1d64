"""Figures that several studies publish."""

from typing import Annotated, Generic, TypeVar

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


class Median(Document):
    """A figure over seeds."""

    value: float
    ci95: Interval
    cases: Cases
