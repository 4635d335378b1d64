"""The documents of the study."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, UnsetType

from rlflow.schemas.figures import NOT_EMPTY, Cases, Count, Document, Figure, Percent, Seconds


class TrainedOn(Document):
    """The lessons that the policy was trained on."""

    lessons: Cases
    families: Cases
    evaluations: Count
    seconds: Seconds


class Summary(Document):
    """Shares of what the expert saves, over lessons."""

    median: float
    least: float
    cases: Cases


class Shares(Document):
    """Shares by the part of the lessons."""

    trained: Summary | UnsetType = UNSET
    held_out: Summary | UnsetType = UNSET


class Reading(Document):
    """Accuracy with which V ranks matches by the expert's choices and by savings."""

    taken_auc: Figure | UnsetType = UNSET
    """The chance that a rewrite which the expert takes is ranked above one that he passes."""
    saving_rank_correlation: Figure | UnsetType = UNSET
    """Of predicted and true savings of the rewrites of a state, the mean rank correlation."""


class Lesson(Document):
    """A graph with a cost model, and what an expert and the policy make of it."""

    family: str
    """The zoo's entry."""
    model: str
    """Its settings."""
    cost: str
    """The prices that the lesson was held by."""
    start: str
    expert: str
    """The search whose steps are shown."""
    held_out: bool
    """The policy was not trained on it."""
    steps: Count
    """Of the expert."""
    tokens: Count
    """Distinct match tokens that the lesson shows."""
    evaluations: Count
    """Rewrites carried out to hold the lesson."""
    seconds: Seconds
    greedy_percent: Percent
    expert_percent: Percent
    policy_percent: Percent
    """By chains that go by the policy."""
    share: float | UnsetType = UNSET
    """Of what the expert finds beyond greedy search; left out where that is nothing."""
    reading: Reading | UnsetType = UNSET


class Policy(Document):
    """The policy that ships: the lessons that it was trained on, what it tells of those that were held out, and
    what its chains find on all of them beside greedy search and the experts. Percentages are of what the start of a
    lesson costs.
    """

    trained_on: TrainedOn
    chains_evaluations: Cases
    """Rewrites that the chains may carry out beside greedy search."""
    shares: Shares
    reading: Reading
    lessons: Annotated[dict[str, Lesson], NOT_EMPTY]


class At(Document):
    """The policy's search with so many rewrites, those of greedy search before it aside."""

    rewrites: Cases
    rlflow_percent: Percent
    without_controller_percent: Percent
    """By chains and e-graphs that go by V alone."""


class Tried(Document):
    """The policy on one model. Percentages are of what the model costs."""

    greedy_percent: Percent
    portfolio_percent: Percent
    """By chains, equality saturation and iterated search, within the expansions of conf/study/policy.yaml."""
    searches: Annotated[list[At], NOT_EMPTY]


Trial = dict[str, Annotated[dict[str, Tried], NOT_EMPTY]]
"""Prices -> graph -> what the policy finds, with C and without it. Of families that lessons and practice show."""


DOCUMENTS = {"policy/metrics.json": Policy, "policy/trial.json": Annotated[Trial, NOT_EMPTY]}
"""Types of results files, by the pattern that the end of a file's path matches."""
