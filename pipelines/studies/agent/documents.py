"""The documents of the study."""

from __future__ import annotations

from typing import Annotated

from rlflow.schemas.figures import NOT_EMPTY, Cases, Count, Document, Percent, Seconds
from studies.figures import Median, Spread


class Found(Document):
    """A search from the original."""

    saved_percent: Percent
    rewrites: Count
    """That it carried out."""
    wall_time_s: Seconds
    """Beside other work."""


class Alone(Document):
    """The agent in one episode from the original, by its most probable actions. Medians over seeds."""

    max_steps: Cases
    """Choices of the episode at most, each of all matches of a class; a dream is as long."""
    saved_percent: Spread
    """By the best snapshot of its controller, after a trial of each on the graph."""
    last_percent: Spread
    """By the controller at the end of its training."""
    untrained_percent: Spread
    """By its prior of greedy search and of what experts take."""
    dream_percent: Spread
    """What the best snapshot saves in the dream."""
    rewrites: Median
    """Carried out on the graph to label rollouts and to try snapshots."""
    wall_time_s: Median
    """Of rollouts, fit, training and trials."""


class Methods(Document):
    """All methods on one graph."""

    alone: Alone
    searches: Annotated[dict[str, Found], NOT_EMPTY]
    """By the names in conf/evaluation; none takes longer than its budget there."""
    best_known_percent: Percent
    """The most that any search or any seed's best snapshot saves here."""


Agent = dict[str, Annotated[dict[str, Methods], NOT_EMPTY]]
"""Prices -> graph -> what the agent saves alone, in percent of the original's price, beside searches."""


DOCUMENTS = {"agent/metrics.json": Annotated[Agent, NOT_EMPTY]}
"""Types of results files, by the pattern that the end of a file's path matches."""
