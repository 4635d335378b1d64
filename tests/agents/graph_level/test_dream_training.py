"""A controller is trained in the dream alone, and scored beside the network that it began as."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from rlflow.agents.graph_level.controller import Controller
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.dream_training import PooledDream, dream_score, train_in_dream, untrained
from rlflow.agents.selection import Trial
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.model import GraphLevelModel

DREAM = GraphLevelDreamConfig(num_envs=8, max_steps=15, temperature=0.5)
SMALL = ControllerConfig(total_steps=256, steps_per_update=16, batch_size=64, epochs=1, width=16, rule_embedding=4)


@pytest.fixture(scope="module")
def dream(world_model: GraphLevelModel, rollouts: Rollouts) -> PooledDream:
    return PooledDream.of(world_model, rollouts, DREAM)


@pytest.fixture(scope="module")
def training(dream: PooledDream):
    return train_in_dream(dream, SMALL, seed=0)


def test_the_same_seed_trains_the_same_controller(training, dream: PooledDream, tmp_path: Path):
    again = train_in_dream(dream, SMALL, seed=0)
    training.controller.save(tmp_path / "a")
    again.controller.save(tmp_path / "b")
    for name in ("controller.safetensors", "controller.json"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_a_controller_names_the_rules_of_its_world_model(training, rollouts: Rollouts):
    arguments = training.controller.arguments
    assert (arguments.rule_ids, arguments.library_hash) == (rollouts.rule_ids, "synthetic")
    assert arguments.max_locations == rollouts.action_space.max_locations
    assert arguments.config == SMALL


def test_the_judge_tries_the_controller_that_is_trained(dream: PooledDream, rollouts: Rollouts):
    """Three updates, tried after each: the first scores best, so its weights are those that are kept."""
    shown: list[dict[str, torch.Tensor]] = []

    def judge(controller: Controller) -> Trial:
        assert controller.arguments.rule_ids == rollouts.rule_ids
        shown.append({name: value.clone() for name, value in controller.policy.state_dict().items()})
        return Trial(score_percent=-len(shown), rewrites=7)

    config = replace(SMALL, total_steps=384, updates_per_trial=1)
    chosen = train_in_dream(dream, config, seed=0, judge=judge)
    kept = chosen.controller.policy.state_dict()
    assert [all(torch.equal(kept[name], weights[name]) for name in kept) for weights in shown] == [True, False, False]
    assert chosen.rewrites == 21


def test_the_baseline_is_the_network_before_training(training):
    """Same shape, other weights, the same ones each time."""
    first, second = (untrained(training.controller.arguments, seed=0).policy.state_dict() for _ in range(2))
    trained = training.controller.policy.state_dict()
    assert first.keys() == trained.keys()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(not torch.equal(first[name], trained[name]) for name in first)


def test_a_score_repeats_and_does_not_disturb_torch(training, dream: PooledDream):
    torch.manual_seed(5)
    state = torch.get_rng_state()
    again = dream_score(dream, training.controller, seed=0)
    assert again == training.score_percent
    assert untrained(training.controller.arguments, seed=0) is not None
    assert torch.equal(torch.get_rng_state(), state)


class Quitter:
    """Terminates at once."""

    def __init__(self, num_rules: int) -> None:
        self.num_rules = num_rules

    def act(self, observation: np.ndarray) -> np.ndarray:
        return np.tile([self.num_rules, 0], (len(observation), 1))


def test_who_does_nothing_scores_nothing(dream: PooledDream):
    """Only the first episode of each dream counts: with the following ones the reward of terminate would add up."""
    quitter = Quitter(len(dream.model.arguments.rule_ids))
    assert dream_score(dream, quitter, seed=0) == pytest.approx(0.0, abs=0.5)  # type: ignore[arg-type]
