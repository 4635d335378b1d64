"""The dream is a proper VecEnv, masks by its own predictions, and never touches the real thing."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import torch
from stable_baselines3.common.vec_env import VecEnv

from rlflow.nn.masking import rule_mask
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.dream_env import INVALID_ACTION_REWARD
from rlflow.world_model.graph_level.dream_env import GraphLevelDreamEnv, visited_states
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.model import GraphLevelModel

Step = tuple[np.ndarray, np.ndarray, np.ndarray, list[dict[str, object]]]


def rule_masks(dream: GraphLevelDreamEnv) -> np.ndarray:
    """Valid rules (B, R + 1) of the present states."""
    return rule_mask(dream.states["counts"]).numpy()


def valid_actions(dream: GraphLevelDreamEnv) -> np.ndarray:
    """The first valid rule that is not terminate where there is one, at location 0."""
    return np.stack([rule_masks(dream).argmax(axis=1), np.zeros(dream.num_envs, dtype=np.int64)], axis=1)


def terminate(dream: GraphLevelDreamEnv) -> np.ndarray:
    return np.tile([dream.memory.num_rules, 0], (dream.num_envs, 1))


def test_observations_and_actions_have_the_declared_spaces(dream: GraphLevelDreamEnv) -> None:
    assert isinstance(dream, VecEnv)
    observation = dream.reset()
    assert observation.shape == (dream.num_envs, dream.layout.size)
    assert all(dream.observation_space.contains(row) for row in observation)
    observation, reward, done, infos = dream.step(valid_actions(dream))
    assert all(dream.observation_space.contains(row) for row in observation)
    assert reward.shape == done.shape == (dream.num_envs,)
    assert len(infos) == dream.num_envs


def test_masks_follow_from_the_predicted_counts(dream: GraphLevelDreamEnv) -> None:
    """As the dream goes on, masks change without anyone asking a real graph."""
    dream.reset()
    seen = []
    for _ in range(10):
        observation, _, _, _ = dream.step(valid_actions(dream))
        counts = dream.layout.split(torch.from_numpy(observation))[2].numpy()
        np.testing.assert_array_equal(rule_masks(dream)[:, :-1], counts > 0)
        assert rule_masks(dream)[:, -1].all()
        seen.append(rule_masks(dream).copy())
    assert any((one != seen[0]).any() for one in seen)


def test_terminate_ends_an_episode_and_is_no_truncation(dream: GraphLevelDreamEnv) -> None:
    before = dream.reset()
    observation, _, done, infos = dream.step(terminate(dream))
    assert done.all()
    for index, info in enumerate(infos):
        assert info["TimeLimit.truncated"] is False
        last = info["terminal_observation"]
        counts = dream.layout.split(torch.from_numpy(before))[2][index]
        assert torch.equal(dream.layout.split(torch.from_numpy(last))[2], counts)
    assert (dream.steps == 0).all()
    assert observation.shape == before.shape


def test_the_horizon_truncates(world_model: GraphLevelModel, rollouts: Rollouts) -> None:
    config = GraphLevelDreamConfig(num_envs=4, max_steps=3, initial_fraction=1.0)
    dream = GraphLevelDreamEnv(world_model, visited_states(world_model, rollouts), config, seed=0)
    dream.reset()
    for step in range(3):
        _, _, done, infos = dream.step(valid_actions(dream))
        assert done.all() == (step == 2)
    assert all(info["TimeLimit.truncated"] is True for info in infos)
    assert all("terminal_observation" in info for info in infos)


def test_an_invalid_action_costs_a_hundred_and_changes_nothing(dream: GraphLevelDreamEnv) -> None:
    before = dream.reset()
    masked = (~rule_masks(dream)).argmax(axis=1)
    assert not rule_masks(dream)[np.arange(dream.num_envs), masked].any()
    outside = np.stack([rule_masks(dream).argmax(axis=1), np.full(dream.num_envs, 7)], axis=1)
    outside[:, 1] = dream.memory.max_locations - 1
    counts = dream.states["counts"].numpy()
    assert (outside[:, 1] >= counts[np.arange(dream.num_envs), outside[:, 0]]).any()
    after, reward, done, _ = dream.step(np.stack([masked, np.zeros_like(masked)], axis=1))
    np.testing.assert_array_equal(after, before)
    assert (reward == INVALID_ACTION_REWARD).all()
    assert not done.any()
    beyond = outside[:, 1] >= counts[np.arange(dream.num_envs), outside[:, 0]]
    after, reward, _, _ = dream.step(outside)
    np.testing.assert_array_equal(after[beyond], before[beyond])
    np.testing.assert_array_equal(reward == INVALID_ACTION_REWARD, beyond)


def test_a_fresh_episode_forgets_the_last_one(world_model: GraphLevelModel, rollouts: Rollouts) -> None:
    config = GraphLevelDreamConfig(num_envs=4, max_steps=12, initial_fraction=1.0)
    dream = GraphLevelDreamEnv(world_model, visited_states(world_model, rollouts), config, seed=0)
    dream.reset()
    dream.step(valid_actions(dream))
    assert dream.states["h"].abs().max() > 0
    dream.step(terminate(dream))
    assert not dream.states["h"].any()
    assert not dream.states["c"].any()
    assert (dream.states["cost"] == 100).all()


def test_starts_are_initial_or_visited_as_asked(world_model: GraphLevelModel, rollouts: Rollouts) -> None:
    starts = visited_states(world_model, rollouts)
    assert starts.initial.sum() == len(rollouts.episodes)
    assert len(starts.initial) == rollouts.num_steps
    for fraction, expected in ((1.0, True), (0.0, False)):
        config = GraphLevelDreamConfig(num_envs=200, initial_fraction=fraction)
        dream = GraphLevelDreamEnv(world_model, starts, config, seed=0)
        dream.reset()
        assert bool((dream.states["cost"] == 100).all()) == expected


def walk(dream: GraphLevelDreamEnv, steps: int) -> list[np.ndarray]:
    return [dream.step(valid_actions(dream))[0] for _ in range(steps)]


def test_the_same_seed_dreams_the_same(dream: GraphLevelDreamEnv) -> None:
    walks = []
    for seed in (3, 3, 4):
        dream.seed(seed)
        dream.reset()
        walks.append(walk(dream, 5))
    np.testing.assert_array_equal(walks[0], walks[1])
    assert (np.array(walks[0]) != np.array(walks[2])).any()


def test_a_dream_goes_on_from_its_state(dream: GraphLevelDreamEnv) -> None:
    dream.reset()
    walk(dream, 3)
    state = {name: value.clone() for name, value in dream.state_dict().items()}
    first = walk(dream, 10)
    dream.load_state_dict(state)
    np.testing.assert_array_equal(first, walk(dream, 10))


def test_the_fingerprint_tells_dreams_apart(
    dream: GraphLevelDreamEnv, world_model: GraphLevelModel, rollouts: Rollouts
) -> None:
    starts = visited_states(world_model, rollouts)
    assert GraphLevelDreamEnv(world_model, starts, dream.config, seed=1).fingerprint == dream.fingerprint
    warmer = replace(dream.config, temperature=2.0)
    assert GraphLevelDreamEnv(world_model, starts, warmer, seed=0).fingerprint != dream.fingerprint


def test_a_dream_never_imports_the_real_rewriter() -> None:
    """The prototype's dream stepped the real environment for masks and termination."""
    script = (
        "import sys\n"
        "from rlflow.world_model.graph_level import diagnostics, dream_env, trainer\n"
        "real = ('environments', 'search', 'rules', 'runtime', 'cost', 'passes', 'ops', 'ir', 'onnx_io')\n"
        "print([m for m in sys.modules if m.startswith(tuple('rlflow.' + name for name in real))])"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
