"""The document of `collect_rollouts`: the episodes of each graph."""

from collections.abc import Iterator
from typing import Annotated, Any

from msgspec import UNSET, UnsetType

from experiment.documents.contradictions import lacking
from rlflow.schemas.figures import (
    DIGITS,
    EQUAL,
    NOT_EMPTY,
    TIMING,
    Cases,
    Count,
    Document,
    Figure,
    Positive,
    Seconds,
    Seed,
)


class Rollouts(Document):
    """The episodes of one graph; figures of match tokens stand where these are what the world model sees."""

    episodes: Cases
    steps: Cases
    rules_available: Count
    """Rules with a match in some visited graph."""
    rules_applied: Count
    """Rules that were applied at least once."""
    mean_improvement_percent: Annotated[Figure, EQUAL]
    """Mean over episodes of the improvement from their first graph to their last; baseline: do_nothing."""
    best_improvement_percent: Annotated[Figure, EQUAL]
    """Best graph met; baseline: do_nothing."""
    steps_per_s: Annotated[Positive, TIMING]
    """Real environment steps a second."""
    wall_time_s: Seconds
    seed: Seed
    evaluations: Cases | UnsetType = UNSET
    """Match tokens: rewrites carried out to know what every match saves."""
    states: Cases | UnsetType = UNSET
    """Match tokens: graphs in which every match was labelled, each as often as it was visited."""
    distinct_tokens: Cases | UnsetType = UNSET
    """Match tokens: matches that differ in what they do, or in what is around them."""
    labels: Cases | UnsetType = UNSET
    """Match tokens: matches of all states, each with what it saves."""
    distinct_graphs: Cases | UnsetType = UNSET
    terminated: Count | UnsetType = UNSET
    """Episodes that the agent ended."""
    truncated: Count | UnsetType = UNSET
    """Episodes that the horizon ended."""
    matches_beyond_limit: Count | UnsetType = UNSET
    """Matches masked because a rule had more than L."""
    measurements: Annotated[Count | UnsetType, TIMING] = UNSET
    """Reward end_to_end: graphs that were timed."""
    measuring_s: Seconds | UnsetType = UNSET
    """Reward end_to_end: what that took."""
    rewards_measured: Annotated[Count | UnsetType, TIMING] = UNSET
    """Reward end_to_end: rewards that compared two graphs."""
    rewards_noise: Annotated[Count | UnsetType, TIMING] = UNSET
    """Reward end_to_end: those that were 0 because of noise."""

    @classmethod
    def contradictions(cls, document: dict[str, Any]) -> Iterator[tuple[str, str]]:
        of_tokens = ("states", "distinct_tokens", "labels")
        of_graphs = ("distinct_graphs", "terminated", "truncated", "matches_beyond_limit")
        yield from lacking(document, of_tokens if "evaluations" in document else of_graphs)


CollectRollouts = Annotated[dict[str, Annotated[Rollouts, DIGITS]], NOT_EMPTY]
"""Graph -> what the agent that collected the episodes met. Figures of match tokens stand where these are what
the world model sees.
"""
