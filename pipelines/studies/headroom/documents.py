"""The documents of the study."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

from experiment.documents.contradictions import disagreeing_saving
from msgspec import Meta

from rlflow.schemas.figures import NOT_EMPTY, Count, Document, Error, Milliseconds, Percent, Seconds
from studies.figures import MeasuredRatio, Settings, Timed


class Along(Document):
    """The search after at most so many evaluations."""

    improvement_percent: Percent
    """Of the best graph so far."""
    prices_measured: Count
    """Until that graph was found."""
    wall_time_s: Seconds
    """Until that graph was found."""


class Row(Document):
    """The saving of one method on a graph, and its effort."""

    cost_before_ms: Milliseconds
    """Cost model's runtime of the original graph."""
    cost_after_ms: Milliseconds
    """Cost model's runtime of the best graph."""
    improvement_percent: Percent
    """Drop from cost_before_ms to cost_after_ms."""
    steps: Count
    """Rewrites that lead to the best graph."""
    evaluations: Count
    """Rewrites carried out, in a graph or in an e-graph."""
    prices_asked: Count
    """Prices that the search asked for, remembered ones too."""
    prices_measured: Count
    """Prices that had to be measured on the runtime."""
    wall_time_s: Seconds
    """Of the search, beside the other searches that ran at the same time."""
    rewriting_s: Seconds
    pricing_s: Seconds
    """Without measuring_s."""
    measuring_s: Seconds
    proven: bool | None
    """Nothing in the e-graph of the last extraction is cheaper; null for methods that cannot prove anything."""
    gap_percent: Percent | None
    """From the proven bound to the best graph of that e-graph, where there is a bound."""
    limited_by: Literal["", "nodes", "passes", "uses", "time", "solver", "depth", None]
    """The limit at which the e-graph stopped growing or its extraction ended, empty if neither had to; null without
    an e-graph.
    """
    equivalent: bool
    """The best graph, reached again by replaying its steps, computes what the original computes on drawn inputs."""
    draws: Count
    """Drawn inputs on which that was compared and that could have told a wrong model from a right one."""
    max_relative_error: Error | None
    """Largest difference over largest absolute reference value; null if it is infinite."""
    memory_mb: Error | None
    """Peak resident memory, in MiB, of the search's process until the search had ended, reading the model included;
    null where it is not known.
    """
    best_known: bool
    """No method saved more on this graph at this cost, to two decimals."""
    at: Annotated[dict[Annotated[str, Meta(pattern="^[1-9][0-9]*$")], Along], NOT_EMPTY]
    """The search after at most so many evaluations."""

    @classmethod
    def contradictions(cls, document: dict[str, Any]) -> Iterator[tuple[str, str]]:
        yield from disagreeing_saving(document)


class Methods(Document):
    """Method -> its row; `original` is the trivial baseline, which does nothing."""

    OTHERS: ClassVar[Mapping[str, Any]] = {r".*": Row}

    original: Row

    @classmethod
    def contradictions(cls, document: dict[str, Any]) -> Iterator[tuple[str, str]]:
        if not any(row["best_known"] for row in document.values()):
            yield "", "no method is marked as the best known"


Headroom = Annotated[dict[str, Annotated[dict[str, Methods], NOT_EMPTY]], NOT_EMPTY]
"""Graph -> cost -> method -> how much it saves with all rules, and for what effort. `original` is the trivial
baseline, which does nothing.
"""


class Latencies(Timed):
    """Latencies of the original and of two methods' results in one setting."""

    original_over_greedy: MeasuredRatio
    original_over_equality_saturation: MeasuredRatio
    greedy_over_equality_saturation: MeasuredRatio
    greedy_ms: Milliseconds
    equality_saturation_ms: Milliseconds


HeadroomLatency = Annotated[dict[str, Settings[Latencies]], NOT_EMPTY]
"""Graph -> setting of ONNX Runtime -> latencies of the original and of the graphs that greedy search and equality
saturation found, measured against each other. Every ratio is the median over rounds, with its 95 % interval; above 1,
the second model is faster.
"""


DOCUMENTS = {"headroom/metrics.json": Headroom, "headroom/latency.json": HeadroomLatency}
"""Types of results files, by the pattern that the end of a file's path matches."""
