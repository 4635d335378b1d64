"""A dream that knows the law stays with the truth; each thing that it gets wrong shows as what it is."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from support.token_dreams import memory
from support.token_worlds import SMALL
from support.written_episodes import LAW, SAVED, A, B, C, D, known_law, written_episode

from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.world_model.held_out import split_episodes
from rlflow.world_model.match_level.diagnostics import by_rule, rule_means
from rlflow.world_model.match_level.imagination import ClassStates, imagine
from rlflow.world_model.match_level.match_deltas import match_deltas
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig
from rlflow.world_model.match_level.open_loop import open_loop, unchanged
from rlflow.world_model.match_level.precomputed import PrecomputedModel
from rlflow.world_model.match_level.trainer import fit_token_model

EPISODES = (written_episode([A], [A, B, C, D]), written_episode([B], [B, D, C], unit_percent=2.0))
CONFIG = MatchLevelDreamConfig(temperature=0.0, pessimism=0.0)
ZERO = np.zeros(len(SAVED))
PLACES = 6


def measured(precomputed: PrecomputedModel, config: MatchLevelDreamConfig = CONFIG) -> dict[int, dict[str, float]]:
    """What is measured of a dream in which a rewrite ends nothing but itself."""

    def dream(states: ClassStates, match_class: torch.Tensor) -> tuple[ClassStates, torch.Tensor]:
        return imagine(precomputed, memory(gone_at_0=0), states, match_class, config, None)

    return open_loop(dream, EPISODES, ZERO, PLACES, horizons=(1, 2, 3, 4, 5))


def test_a_dream_that_knows_the_law_makes_no_error():
    """Not vacuous: one in which nothing changes loses track, and to expect nothing is wrong."""
    report = measured(known_law())
    assert {step: errors["cases"] for step, errors in report.items()} == {1: 7, 2: 5, 3: 3, 4: 1}
    for step, errors in report.items():
        assert errors["reward"] == pytest.approx(0, abs=1e-5)
        assert errors["return"] == pytest.approx(0, abs=1e-5)
        assert errors["alive"] == errors["near"] == 1.0
        assert errors["reward_zero"] > 0.1
        assert errors["alive_copy"] < 1 or step == 1
        assert errors["near_copy"] < 1 or step == 4  # at the end of an episode nothing is near
    assert report[2]["return_correlation"] == pytest.approx(1)


def test_the_baselines_in_closed_form():
    """C before D in the first episode, D before C in the second: in two of five cases both are there at the start."""
    two = measured(known_law())[2]
    assert two["alive_copy"] == pytest.approx(2 / 5)
    rewards = [[SAVED[B], SAVED[C], SAVED[D]], [2 * SAVED[D], 2 * SAVED[C]]]
    assert two["reward_zero"] == pytest.approx(np.abs(np.concatenate(rewards)).mean())
    returns = [SAVED[A] + SAVED[B], SAVED[B] + SAVED[C], SAVED[C] + SAVED[D], 2 * (SAVED[B] + SAVED[D])]
    returns.append(2 * (SAVED[D] + SAVED[C]))
    assert two["return_zero"] == pytest.approx(np.abs(returns).mean())


def test_means_of_rules_are_a_baseline():
    """With the truth as means of rules, that baseline makes no error; with 1 unit too much, it is 1 and 2 percent."""

    def dream(states: ClassStates, match_class: torch.Tensor) -> tuple[ClassStates, torch.Tensor]:
        return unchanged(states, match_class)

    exact = open_loop(dream, EPISODES, np.array(SAVED), PLACES)
    assert exact[2]["reward_rule_mean"] == exact[2]["return_rule_mean"] == 0
    above = open_loop(dream, EPISODES, np.array(SAVED) + 1, PLACES)
    assert above[2]["reward_rule_mean"] == pytest.approx((3 * 1 + 2 * 2) / 5)
    assert above[2]["return_rule_mean"] == pytest.approx((3 * 2 + 2 * 4) / 5)


def test_a_wrong_saving_is_an_error_of_rewards_alone():
    """B is thought to save 1 unit, where it costs 1: it is one of the first rewrites twice, at 1 and at 2 percent."""
    report = measured(known_law(saved=(SAVED[A], 1.0, SAVED[C], SAVED[D])))
    assert report[1]["reward"] == pytest.approx((2 + 4) / 7, abs=1e-5)
    assert report[2]["reward"] == pytest.approx(2 / 5, abs=1e-5)
    assert report[2]["return"] == pytest.approx((2 + 2 + 4) / 5, abs=1e-5)
    assert all(errors["alive"] == errors["near"] == 1.0 for errors in report.values())


def test_a_birth_that_is_not_known_loses_track():
    """B is thought to bear no D: the second of five rewrites is missing once, with the 4 percent that it saves."""
    report = measured(known_law(law=LAW | {B: (C,)}))
    assert report[1]["alive"] == 1
    assert report[1]["near"] == pytest.approx(2 * 3 / (5 + 3))  # B, C and C of B, C, D and C, D
    assert report[2]["alive"] == pytest.approx(4 / 5)
    assert report[2]["reward"] == report[2]["return"] == pytest.approx(2 * SAVED[D] / 5, abs=1e-5)


def test_after_a_rewrite_that_is_missing_the_dream_goes_on():
    """D is left out, and C comes after it."""
    report = measured(known_law(law=LAW | {B: (C,)}))
    assert report[3]["cases"] == 3  # A B C, B C D, B D C
    assert report[3]["alive"] == pytest.approx(2 / 3)
    assert report[3]["return"] == pytest.approx((0 + SAVED[D] + 2 * SAVED[D]) / 3, abs=1e-5)


def test_pessimism_shows_as_an_error():
    config = MatchLevelDreamConfig(temperature=0.0, pessimism=1.0)
    report = measured(known_law(sigma=0.1), config)
    paid = {token: np.sinh(np.arcsinh(SAVED[token]) - 0.1) for token in (A, B, C, D)}
    errors = [
        abs(paid[token] - SAVED[token]) * unit for unit, taken in ((1, (A, B, C, D)), (2, (B, D, C))) for token in taken
    ]
    assert report[1]["reward"] == pytest.approx(np.mean(errors), abs=1e-5)


def test_a_fitted_model_stays_with_real_episodes_longer_than_a_copy(token_rollouts: TokenRollouts):
    """On real rollouts: with the sets of the held-out episodes among those that it can draw from."""
    token_model = fit_token_model(token_rollouts, replace(SMALL, encoder_epochs=10, epochs=20), seed=0)
    training, held_out = split_episodes(token_rollouts.episodes, 0.2, 0)
    reading = token_model.read(token_rollouts)
    precomputed = PrecomputedModel.of(token_model.memory, reading, match_deltas(token_rollouts.episodes, 24).sets, 4)
    means = by_rule(token_rollouts.rule_of, rule_means(token_rollouts, training))
    dream = partial(imagine, precomputed, token_model.memory, config=CONFIG, generator=None)
    report = open_loop(dream, held_out, means, max_kinds=64)
    assert report[1]["alive"] == report[1]["alive_copy"] == 1
    assert 0 < report[2]["alive_copy"] < report[2]["alive"]
    assert report[1]["near"] > 2 * report[1]["near_copy"]
    assert report[2]["return"] < report[2]["return_zero"]
