"""Open-loop errors are counted rightly, and an oracle has none."""

import pytest
import torch

from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.graph_level.dataset import pad_episodes
from rlflow.world_model.graph_level.diagnostics import latent_spread, open_loop
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.mdn_rnn import State
from rlflow.world_model.graph_level.model import GraphLevelModel

CONFIG = GraphLevelDreamConfig(temperature=0.0)


def test_cases_are_the_windows_inside_episodes(world_model: GraphLevelModel, rollouts: Rollouts) -> None:
    report = open_loop(
        world_model, rollouts, world_model.latents(rollouts), rollouts.episodes, CONFIG, seed=0, horizons=(1, 3, 1000)
    )
    assert set(report) == {1, 3}
    lengths = [episode.num_steps for episode in rollouts.episodes]
    assert report[1]["cases"] == sum(lengths)
    assert report[3]["cases"] == sum(max(length - 2, 0) for length in lengths)


def test_the_copy_baseline_is_the_true_change(world_model: GraphLevelModel, rollouts: Rollouts) -> None:
    report = open_loop(
        world_model, rollouts, world_model.latents(rollouts), rollouts.episodes, CONFIG, seed=0, horizons=(1,)
    )
    _, change = pad_episodes(rollouts.episodes).valid_transitions(torch.zeros(len(rollouts.graphs), 6))
    assert report[1]["cost_copy"] == pytest.approx(change.cost.abs().mean().item(), rel=1e-4)
    assert report[1]["counts_copy"] == pytest.approx(change.counts.abs().mean().item(), rel=1e-4)


def test_an_oracle_has_no_error(
    world_model: GraphLevelModel, rollouts: Rollouts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An `imagine` that reads the truth is told apart from the fitted one, step by step: the alignment of
    predictions and targets, off by one in either, would show."""
    episodes = [max(rollouts.episodes, key=lambda episode: episode.num_steps)]
    sequences = pad_episodes(episodes)
    truth = sequences.states(world_model.encoder.encode(rollouts.graphs))
    clock = {"step": 0}

    def oracle(memory: object, state: State, action: torch.Tensor, hidden: object, *_: object) -> tuple[object, ...]:
        clock["step"] += 1
        times = torch.arange(sequences.num_steps) + clock["step"]
        inside = times.clamp(max=sequences.num_steps)
        following = State(truth.z[0, inside], truth.counts[0, inside], truth.cost[0, inside])
        return following, sequences.reward[0, inside - 1], torch.zeros(len(times)), hidden

    monkeypatch.setattr("rlflow.world_model.graph_level.diagnostics.imagine", oracle)
    report = open_loop(world_model, rollouts, world_model.latents(rollouts), episodes, CONFIG, seed=0, horizons=(1, 4))
    for errors in report.values():
        assert (errors["latent"], errors["counts"], errors["cost"], errors["reward"]) == (0, 0, 0, 0)
        assert errors["rule_mask"] == 1
        assert errors["counts_copy"] > 0
        assert errors["reward_minus_cost_drop"] == pytest.approx(0, abs=1e-4)


def test_the_fitted_model_beats_its_baselines_at_one_step(world_model: GraphLevelModel, rollouts: Rollouts) -> None:
    report = open_loop(
        world_model, rollouts, world_model.latents(rollouts), rollouts.episodes, CONFIG, seed=0, horizons=(1,)
    )[1]
    for name, baseline in (("counts", "counts_copy"), ("cost", "cost_copy"), ("reward", "reward_mean")):
        assert report[name] < report[baseline]
    assert report["rule_mask"] > max(report["rule_mask_copy"], report["rule_mask_majority"])


def test_a_collapsed_latent_is_seen(world_model: GraphLevelModel, rollouts: Rollouts) -> None:
    spread = latent_spread(world_model.latents(rollouts))
    assert spread["latent_variance_min"] == pytest.approx(1, abs=1e-3)
    assert 1 <= spread["latent_effective_dimensions"] <= 6
    collapsed = latent_spread(world_model.encoder.encode([rollouts.graphs[0]] * 5))
    assert collapsed["latent_variance_mean"] == pytest.approx(0, abs=1e-6)
