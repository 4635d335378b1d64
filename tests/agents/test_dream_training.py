import numpy as np
import pytest
import torch

from rlflow.agents.config import ControllerConfig
from rlflow.agents.dream_training import (
    best_improvement_percent,
    dream_score,
    mean_improvement_percent,
    train_in_dream,
    untrained,
)
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.config import DreamConfig
from rlflow.world_model.dream_env import visited_states
from rlflow.world_model.model import WorldModel

DREAM = DreamConfig(num_envs=8, max_steps=15, temperature=0.5)
SMALL = ControllerConfig(total_steps=256, steps_per_update=16, batch_size=64, epochs=1, width=16, rule_embedding=4)


@pytest.fixture(scope="module")
def training(world_model: WorldModel, rollouts: Rollouts):
    return train_in_dream(world_model, visited_states(world_model, rollouts), DREAM, SMALL, seed=0)


def test_the_baseline_is_the_network_before_training(training):
    """Same shape, other weights, the same ones each time."""
    first, second = (untrained(training.controller.arguments, seed=0).policy.state_dict() for _ in range(2))
    trained = training.controller.policy.state_dict()
    assert first.keys() == trained.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], trained[name]) for name in first)


def test_a_score_repeats_and_does_not_disturb_torch(training, world_model: WorldModel, rollouts: Rollouts):
    starts = visited_states(world_model, rollouts)
    torch.manual_seed(5)
    state = torch.get_rng_state()
    again = dream_score(world_model, starts, training.controller, DREAM, seed=0)
    assert again == training.score_percent
    assert untrained(training.controller.arguments, seed=0) is not None
    assert torch.equal(torch.get_rng_state(), state)


class Quitter:
    """Terminates at once."""

    def __init__(self, num_rules: int) -> None:
        self.num_rules = num_rules

    def act(self, observation: np.ndarray) -> np.ndarray:
        return np.tile([self.num_rules, 0], (len(observation), 1))


def test_who_does_nothing_scores_nothing(world_model: WorldModel, rollouts: Rollouts):
    """Only the first episode of each dream counts: with the following ones the reward of terminate would add up."""
    starts = visited_states(world_model, rollouts)
    quitter = Quitter(len(world_model.arguments.rule_ids))
    assert dream_score(world_model, starts, quitter, DREAM, seed=0) == pytest.approx(0.0, abs=0.5)  # type: ignore[arg-type]


def test_improvement_is_that_of_the_best_graph_not_of_the_last(rollouts: Rollouts):
    expected = [100.0 - min(episode.cost) for episode in rollouts.episodes]
    last = [100.0 - episode.cost[-1] for episode in rollouts.episodes]
    assert mean_improvement_percent(rollouts.episodes) == pytest.approx(np.mean(expected), rel=1e-6)
    assert mean_improvement_percent(rollouts.episodes) > np.mean(last)
    assert best_improvement_percent(rollouts.episodes) == pytest.approx(max(expected), rel=1e-6)
    assert max(expected) > np.mean(expected)
