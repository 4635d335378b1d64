"""The documents of the study."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from rlflow.schemas.figures import NOT_EMPTY, TIMING, UNIQUE, Cases, Count, Document, Positive, Seconds, Seeds, Text
from studies.figures import Spread

Names = Annotated[list[Text], NOT_EMPTY, UNIQUE]


class Outcome(Document):
    """The best that was found on a graph."""

    operations: Count
    tried: Count
    """Passes that were run to find it."""
    passes: list[Text]
    """That lead to it."""
    difference: str
    """In what its outputs differ from the original's; empty if in nothing."""


class Row(Document):
    """One seed of an agent or a baseline."""

    outcomes: Annotated[dict[str, Outcome], NOT_EMPTY]
    training_s: Seconds
    curve: list[float]
    """Mean return of each tenth of the training."""
    counts: Annotated[dict[str, Count], TIMING]
    """Steps of the training that were known (hits), and those that the compiler was asked for (misses)."""
    open_loop: dict[Annotated[str, Meta(pattern="^[0-9]+$")], dict[str, float]]
    """Of a world model: passes ahead -> errors on held-out random episodes, beside their baselines."""
    core_set: list[Annotated[list[Text], NOT_EMPTY]] | UnsetType = UNSET
    """The sequences of passes that were learned, in the order in which they are run; of core sets alone."""


class Graphs(Document):
    """Results of the agents and baselines of one compiler on each held-out graph."""

    backend: Text
    training: Names
    """The programs that agents were trained on."""
    held_out: Annotated[dict[str, Names], NOT_EMPTY]
    entrants: Annotated[dict[str, Annotated[dict[Annotated[str, Meta(pattern="^[0-9]+$")], Row], NOT_EMPTY]], NOT_EMPTY]
    """By seed."""
    times_ms: Annotated[dict[str, dict[str, Positive]], TIMING]
    """Graph -> entrant -> milliseconds of a run of the first seed's program, all taken in turns."""
    compiler_s: Annotated[dict[str, Seconds], TIMING] | UnsetType = UNSET
    """Graph -> seconds of a processor that the passes of the core set take."""


class Entrant(Document):
    """One agent or baseline over held-out graphs."""

    over_default_percent: Spread | None
    count_ratio_percent: Spread | None
    over_fixpoint_percent: Spread | None
    fixpoint_count_ratio_percent: Spread | None
    passes_run: Spread | None
    seeds: Seeds
    graphs: Cases
    apart: Count
    wrong_outputs: Count
    run_time_ratio: Annotated[Positive | UnsetType | None, TIMING] = UNSET
    """Run time of the default pipeline's programs over that of the first seed's; null if not timed."""
    families: Annotated[dict[str, Entrant], NOT_EMPTY] | UnsetType = UNSET


PassOrdering = Annotated[dict[str, Annotated[dict[str, Entrant], NOT_EMPTY]], NOT_EMPTY]
"""Backend -> agent or baseline -> figures over held-out graphs (studies.pass_ordering.figures). Percentages are of
geometric means over graphs; above 0 is better than the reference.
"""


DOCUMENTS = {
    "pass_ordering/metrics.json": PassOrdering,
    "pass_ordering/*.json": Graphs,
    "pass_ordering/one_shot/*.json": Graphs,
}
"""Types of results files, by the pattern that the end of a file's path matches."""
