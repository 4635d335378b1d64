"""The document of `fit_world_model`: how far V and M can be trusted."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

from msgspec import UNSET, UnsetType

from experiment.documents.contradictions import lacking
from rlflow.schemas.figures import DIGITS, EQUAL, NOT_EMPTY, Cases, Count, Document, Figure, Percent, Seconds, Seed


class OpenLoop(Document):
    """The error of a prediction so many steps ahead."""

    target: Literal["z", "counts", "cost", "reward", "return"]
    horizon: Cases
    """Steps predicted without looking."""
    error: Annotated[Figure, DIGITS]
    """Mean absolute error on held-out episodes; baseline: copy, for rewards mean, and over match tokens the mean of
    each rule; return: the sum of the rewards up to the horizon.
    """


class Regret(Document):
    """The loss from trying only what V likes best."""

    kinds: Cases
    """Kinds of matches among which the best is taken, those that V says save most."""
    regret: Annotated[Figure, DIGITS]
    """Share of a state's best saving that is missed; baseline: by the mean of each rule, or random."""


class Calibration(Document):
    """The share of V's errors within a multiple of its sigma."""

    nominal_percent: Annotated[Percent, EQUAL]
    """Of all errors, if they were normal with V's sigma."""
    share: Annotated[Figure, DIGITS]
    """Of errors that are as small, on tokens of held-out episodes that no other one shows, each half by the factor
    of the other; baseline: without a factor.
    """


class KeptTrack(Document):
    """The likeness of a dream and the real episode that it is led through."""

    target: Literal["alive", "near"]
    horizon: Cases
    """Steps predicted without looking."""
    share: Annotated[Figure, DIGITS]
    """alive: of the next real rewrites, those that the dream still has; near: F1 of the kinds near the last
    rewrite; baseline: copy, a dream in which nothing changes.
    """


class ReturnCorrelation(Document):
    """The dreamed and the real return of the same rewrites."""

    horizon: Cases
    """Steps predicted without looking."""
    correlation: Annotated[Figure, DIGITS]
    """Of the dreamed and the real return of the same rewrites; baseline: mean, any constant."""


class Fit(Document):
    """The fit of V and M to the rollouts of one graph; every figure on held-out episodes."""

    training_episodes: Cases
    held_out_episodes: Count
    parameters: Cases
    epochs: Cases
    losses: Annotated[dict[str, float], DIGITS, NOT_EMPTY]
    """Final value of each loss."""
    open_loop: Annotated[list[OpenLoop], NOT_EMPTY]
    training_s: Seconds
    seed: Seed
    rule_mask_accuracy: Annotated[Figure | UnsetType, DIGITS] = UNSET
    """Baseline: majority."""
    terminated_accuracy: Annotated[Figure | UnsetType, DIGITS] = UNSET
    """Baseline: majority."""
    saving_r2: Annotated[Figure | UnsetType, DIGITS] = UNSET
    """Match tokens: share of the variance of what matches save, in percent of the start's price, that V explains;
    baseline: the mean of the match's rule.
    """
    saving_r2_new_tokens: Annotated[Figure | UnsetType, DIGITS] = UNSET
    """Match tokens: saving_r2 of the tokens that no training episode shows, each in one state; baseline: the mean
    of the match's rule.
    """
    saving_rank_correlation: Annotated[Figure | UnsetType, DIGITS] = UNSET
    """Match tokens: mean over states of the rank correlation of what kinds save and what V says; baseline: the mean
    of the kind's rule.
    """
    saving_correlation_within_rules: Annotated[Figure | UnsetType, DIGITS] = UNSET
    """Match tokens: correlation of what matches save and what V says, after the means of each rule were taken off
    both; that of the rules' means is 0.
    """
    saving_correlation_within_rules_new_tokens: Annotated[Figure | UnsetType, DIGITS] = UNSET
    """Match tokens: saving_correlation_within_rules of the tokens that no training episode shows, each in one
    state; that of the rules' means is 0.
    """
    regrets: list[Regret] | UnsetType = UNSET
    """Match tokens: how much is lost by trying only what V likes best."""
    calibration: list[Calibration] | UnsetType = UNSET
    """Match tokens: does V know its errors?"""
    kept_track: list[KeptTrack] | UnsetType = UNSET
    """Match tokens: dreams that are led through real episodes."""
    return_correlation: list[ReturnCorrelation] | UnsetType = UNSET
    """Match tokens: dreams that are led through real episodes."""

    @classmethod
    def contradictions(cls, document: dict[str, Any]) -> Iterator[tuple[str, str]]:
        of_tokens = ("calibration", "kept_track", "return_correlation")
        of_graphs = ("rule_mask_accuracy", "terminated_accuracy")
        yield from lacking(document, of_tokens if "regrets" in document else of_graphs)


FitWorldModel = Annotated[dict[str, Fit], NOT_EMPTY]
"""Graph -> the fit of V and M to its rollouts; every figure on held-out episodes."""
