"""The document of `temperature_sweep`: scores in the dream and in reality by temperature."""

from typing import Annotated

from msgspec import UNSET, UnsetType

from rlflow.schemas.figures import DIGITS, EQUAL, NOT_EMPTY, Cases, Document, Interval, Percent, Positive, Seeds


class Point(Document):
    """Controllers trained in the dream at one temperature."""

    temperature: Annotated[Positive, EQUAL]
    """Tau."""
    dream_score_percent: Annotated[Percent, DIGITS]
    """Mean return of an episode in the dream, from the original; of several seeds the median."""
    real_score_percent: Annotated[Percent, DIGITS]
    """The same of an episode on the graph, as long as a dream and by the same, most probable actions."""
    episodes: Cases
    """Real episodes behind the score."""
    seeds: Seeds
    dream_score_percents: Annotated[list[Percent], DIGITS]
    """Of each seed, in their order; `dream_score_percent` is the median."""
    real_score_percents: Annotated[list[Percent], DIGITS]
    """Of each seed, in their order; `real_score_percent` is the median."""
    dream_score_percent_ci95: Annotated[Interval | UnsetType, DIGITS] = UNSET
    """Over the seeds, where there are several."""
    real_score_percent_ci95: Annotated[Interval | UnsetType, DIGITS] = UNSET
    """Over the seeds, where there are several."""


class Sweep(Document):
    """The temperatures on one graph, beside a random agent."""

    points: Annotated[list[Point], NOT_EMPTY]
    random_score_percent: Annotated[Percent, EQUAL]
    """The trivial baseline: a random agent in the real environment."""
    random_episodes: Cases


TemperatureSweep = Annotated[dict[str, Sweep], NOT_EMPTY]
"""Graph -> Table 3 of the paper: for each temperature of the dream, the score there and in reality."""
