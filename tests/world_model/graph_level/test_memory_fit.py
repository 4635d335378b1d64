"""M's losses fall, also on episodes that it was not trained on."""

from dataclasses import replace

import torch
from support.world_models import SMALL, assert_same

from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.graph_level.model import GraphLevelModel
from rlflow.world_model.graph_level.trainer import fit_world_model
from rlflow.world_model.held_out import split_episodes


def test_losses_fall_also_on_held_out_episodes(rollouts: Rollouts) -> None:
    metrics: list[dict[str, float]] = []
    fit_world_model(rollouts, SMALL, seed=0, on_epoch=lambda _, values: metrics.append(values))
    assert [set(values) for values in metrics[:2]] == [{"encoder/loss"}] * 2
    assert metrics[-1]["memory/loss"] < metrics[2]["memory/loss"]
    assert metrics[-1]["held_out/loss"] < metrics[2]["held_out/loss"]


def test_held_out_episodes_are_never_trained_on(rollouts: Rollouts, world_model: GraphLevelModel) -> None:
    """Another reward in them changes no weight; another reward in a training episode does."""
    training, held_out = split_episodes(range(len(rollouts.episodes)), SMALL.held_out_fraction, 0)

    def with_reward(index: int) -> Rollouts:
        changed = replace(rollouts.episodes[index], reward=rollouts.episodes[index].reward + 5)
        episodes = (*rollouts.episodes[:index], changed, *rollouts.episodes[index + 1 :])
        return replace(rollouts, episodes=episodes)

    assert_same(fit_world_model(with_reward(held_out[0]), SMALL, seed=0), world_model)
    moved = fit_world_model(with_reward(training[0]), SMALL, seed=0)
    assert not torch.equal(moved.memory.reward_mean, world_model.memory.reward_mean)
