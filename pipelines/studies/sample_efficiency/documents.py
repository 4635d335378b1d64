"""The documents of the study."""

from __future__ import annotations

from typing import Annotated

from rlflow.schemas.figures import NOT_EMPTY, Cases, Count, Document, Error, Percent, Seconds, Seed, Tally
from studies.figures import Median


class Greedy(Document):
    """Greedy search, the baseline."""

    result_percent: Percent
    interactions: Count
    """Rewrites that were carried out to price the matches on its way."""


class Curve(Document):
    """The score after so many steps."""

    interactions: Count
    """Real steps so far, trials included."""
    score_percent: Percent


class ModelFree(Document):
    """The agent without a world model."""

    curve: Annotated[list[Curve], NOT_EMPTY]
    result_percent: Percent
    """The best of the curve."""
    interactions: Count
    """Real steps until then."""
    training_s: Seconds


class Point(Document):
    """The agent after so many episodes of rollouts."""

    episodes: Cases
    """That were collected."""
    interactions: Count
    """Rewrites that were carried out to collect and label them, and in trials."""
    trial_interactions: Count
    """Those of the trials on the graph, one of each controller."""
    dream_percents: Annotated[list[Percent], NOT_EMPTY]
    """Scores in the dream of the controllers that were trained in one."""
    trial_percents: Annotated[list[Percent], NOT_EMPTY]
    """What each of them saves on the graph."""
    result_percent: Percent
    training_s: Seconds
    model_free_interactions: Tally | None
    """Real steps after which the model-free agent was as good; null if it never was."""


class GraphLevelModel(Document):
    """The agent that learns in a dream."""

    points: Annotated[list[Point], NOT_EMPTY]
    interactions: Tally | None
    """Of the first result that is as good as the model-free agent's."""


class Row(Document):
    """One seed of the agents on a graph."""

    seed: Seed
    greedy: Greedy
    model_free: ModelFree
    world_model: GraphLevelModel
    share_of_interactions: Error | None


class ShareOfInteractions(Median):
    """Real steps over those without a world model."""

    value: Error


class Graph(Document):
    """The agents on one graph over their seeds."""

    seeds: Annotated[list[Row], NOT_EMPTY]
    greedy_percent: Percent
    """What greedy saves in as many choices."""
    model_free_percent: Median
    """The best result of the model-free agent."""
    model_free_interactions: Median
    """Its real steps until then."""
    world_model_percent: Median
    """The result of the agent with a world model of all episodes that were collected."""
    world_model_interactions: Median
    """Its real steps."""
    as_good: Count
    """Seeds by which the agent with a world model did at least as well as the model-free one."""
    share_of_interactions: ShareOfInteractions | None


SampleEfficiency = Annotated[dict[str, Graph], NOT_EMPTY]
"""Graph -> real steps that an agent needs which learns in a dream, beside one that learns on the graph itself.
Results are returns of an episode from the original by the most probable actions, in percent of its price; doing
nothing returns 0. Medians over seeds.
"""


DOCUMENTS = {"sample_efficiency/metrics.json": SampleEfficiency}
"""Types of results files, by the pattern that the end of a file's path matches."""
