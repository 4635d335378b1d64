"""A model's word for its own errors: right if they are normal with its sigma, and put right by one factor."""

import numpy as np
import pytest
import torch
from scipy.stats import norm
from support.written_episodes import SAVED, A, B, C, D, written_episode

from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.world_model.held_out import split_episodes
from rlflow.world_model.match_level.calibration import NOMINAL, calibration_factor, coverage, relative_errors, unseen
from rlflow.world_model.match_level.diagnostics import labels
from rlflow.world_model.match_level.model import MatchLevelModel
from rlflow.world_model.match_level.token_encoder import TokenReading

NORMAL = norm.ppf((np.arange(2000) + 0.5) / 2000)


def test_normal_errors_are_covered_as_they_should_be():
    for share, actual in zip(NOMINAL, coverage(NORMAL).values(), strict=True):
        assert actual == pytest.approx(share, abs=1e-3)
    assert list(coverage(NORMAL)) == ["coverage_50", "coverage_80", "coverage_90", "coverage_95"]


def test_a_model_that_is_too_sure_is_told_by_how_much():
    """Errors that are three times as large as was said: 26 % of them are within what should be 50 %."""
    assert coverage(3 * NORMAL)["coverage_50"] == pytest.approx(2 * norm.cdf(norm.ppf(0.75) / 3) - 1, abs=1e-3)
    assert calibration_factor(3 * NORMAL) == pytest.approx(3, rel=1e-2)
    assert calibration_factor(0.2 * NORMAL) == pytest.approx(0.2, rel=1e-2)


def test_the_factor_puts_the_table_right_as_far_as_one_can():
    """Errors with heavy tails: no factor is right everywhere, and none of a hundred is better."""
    errors = np.random.default_rng(0).standard_t(2, 4000)

    def deviation(factor: float) -> float:
        return sum(abs(a - s) for a, s in zip(coverage(errors / factor).values(), NOMINAL, strict=True))

    best = min(deviation(factor) for factor in np.linspace(0.5, 5, 100))
    assert deviation(calibration_factor(errors)) < min(deviation(1.0) / 2, best + 0.02)


def test_no_errors_leave_sigma_as_it_is():
    assert calibration_factor(np.zeros(0)) == 1
    assert calibration_factor(np.zeros(5)) == 1


def test_errors_are_in_units_of_sigma():
    """Of a reading that is one sigma too high for B alone, at any unit of prices."""
    episode = written_episode([A], [A, B, C, D], unit_percent=0.5)
    sigma = torch.tensor([0.1, 0.2, 0.3, 0.4])
    read = torch.asinh(torch.tensor(SAVED)) + torch.tensor([0.0, 0.2, 0.0, 0.0])
    reading = TokenReading(torch.zeros(4, 1), read, sigma, taken=torch.zeros(4), gain=torch.zeros(4))
    errors = relative_errors(reading, labels([episode]))
    assert errors == pytest.approx([0, -1, 0, 0, 0], abs=1e-5)  # the classes A; B; C, D; D


def test_what_is_unseen_is_told_once():
    held_out, training = written_episode([A, D], [A, B]), written_episode([B], [B])
    assert unseen([held_out], [training]).token.tolist() == [A]  # B, C and D are in both
    assert unseen([held_out], [written_episode([A], [])]).token.tolist() == [B, C, D]
    assert unseen([training], [training]).token.tolist() == []


def test_a_fitted_model_is_calibrated_on_its_held_out_episodes(
    token_model: MatchLevelModel, token_rollouts: TokenRollouts
):
    """With its factor taken off, the fit finds that factor again; with it on, there is nothing left to correct."""
    config, factor = token_model.arguments.config, float(token_model.encoder.sigma_factor)
    training, held_out = split_episodes(token_rollouts.episodes, config.held_out_fraction, 0)
    errors = relative_errors(token_model.read(token_rollouts), unseen(held_out, training))
    assert len(errors) > 20
    assert factor != 1
    assert calibration_factor(errors * factor) == pytest.approx(factor, rel=1e-4)
    assert calibration_factor(errors) == pytest.approx(1, rel=1e-4)
