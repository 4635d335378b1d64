"""The documents of the study."""

from __future__ import annotations

from typing import Annotated

from rlflow.schemas.figures import NOT_EMPTY, Cases, Document, Interval, Load, Milliseconds, Ratio


class Accuracy(Document):
    """The price of a graph, beside its latency."""

    cost_model_ms: Milliseconds
    """regions_ms and reorders_ms together."""
    end_to_end_ms: Milliseconds
    """Median over the sessions of all rounds."""
    difference_percent: float
    """cost_model_ms over end_to_end_ms, less 100 %."""
    alone_difference_percent: float
    """The same of regions_ms and own_reorders_ms together: the baseline of difference_percent."""
    control: Ratio
    """The model over itself, median over rounds: the noise floor."""
    control_ci95: Interval
    regions_ms: Milliseconds
    """All regions, without the reorders that they have alone."""
    reorders_ms: Milliseconds
    """The reorders of the whole graph."""
    own_reorders_ms: Milliseconds
    """The reorders that all regions have alone."""
    rounds: Cases
    """Each with two fresh sessions of the model."""
    runs_per_round: Cases
    """At least, of each session."""
    load: Load
    """Processes that ran or waited to run in the last minute, before the timing and after it; the timing itself is
    one.
    """


CostAccuracy = Annotated[dict[str, Accuracy], NOT_EMPTY]
"""Graph -> what the cost model says beside what the model takes end to end in ONNX Runtime, and beside what the sum of
regions would say without a price for the borders.
"""


DOCUMENTS = {"cost_accuracy/metrics.json": CostAccuracy}
"""Types of results files, by the pattern that the end of a file's path matches."""
