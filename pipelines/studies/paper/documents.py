"""The documents of the study."""

from __future__ import annotations

from typing import Annotated, Literal

from rlflow.schemas.figures import NOT_EMPTY, Count, Document, Seeds
from studies.figures import Spread


class Variant(Document):
    """One agent, temperature or other variant on a graph."""

    seeds: Seeds
    figures: Annotated[
        dict[
            Literal[
                "layers",
                "unique_layers",
                "rules_that_match",
                "matches",
                "graphs",
                "step_ms",
                "correlation_runtime_ms_flops",
                "correlation_runtime_ms_bytes_moved",
                "correlation_runtime_ms_launches",
                "correlation_flops_bytes_moved",
                "correlation_flops_launches",
                "correlation_bytes_moved_launches",
                "improvement_percent",
                "deployed_percent",
                "bytes_saved_percent",
                "peak_memory_saved_percent",
                "launches_saved_percent",
                "optimisation_s",
                "evaluations",
                "training_s",
                "training_evaluations",
                "dream_percent",
                "real_percent",
                "greedy_percent",
                "transferred_percent",
                "special_percent",
                "latency_ratio_as_written",
                "latency_ratio_as_written_low",
                "latency_ratio_as_written_high",
                "latency_ratio_deployed",
                "latency_ratio_deployed_low",
                "latency_ratio_deployed_high",
                "latency_as_written_ms",
                "latency_deployed_ms",
            ],
            Spread,
        ],
        NOT_EMPTY,
    ]
    curves: dict[str, Annotated[list[list[float]], NOT_EMPTY]]
    """One course for each seed."""
    counts: dict[str, Count]
    """How often each rule was applied, by its name, all seeds together."""


Paper = Annotated[dict[str, Annotated[dict[str, Variant], NOT_EMPTY]], NOT_EMPTY]
"""Graph -> agent, temperature or other variant -> figures over seeds: a part of the papers' evaluations. Figures have
their unit in their name; savings are in percent of what the graph took at the start.
"""


DOCUMENTS = {"paper/*.json": Paper}
"""Types of results files, by the pattern that the end of a file's path matches."""
