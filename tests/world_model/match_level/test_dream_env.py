"""The dream over match tokens: what an action does, what is seen of it, and that it can be repeated and resumed."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.vec_env import VecEnvWrapper
from support.token_dreams import EMBEDDING, Entry, Set, any_valid, dream, precomputed, stacked, state

from rlflow.representation.token_rollouts import FAR_AWAY
from rlflow.world_model.dream_env import INVALID_ACTION_REWARD
from rlflow.world_model.match_level.dream_env import MatchLevelDreamEnv

A, B, C, D = range(4)
PLACES = 5


def wandering(seed: int = 0, matches: int = 2, **settings: float) -> MatchLevelDreamEnv:
    """A bears B or C by chance, and each of those A or D, so that walks differ. `matches`: of A at the start."""
    sets = {
        A: [Set([Entry(B)]), Set([Entry(C), Entry(D)])],
        B: [Set([Entry(A)]), Set([Entry(D)])],
        C: [Set([Entry(A)])],
    }
    known = precomputed(sets, [0.3, -0.1, 0.2, 1.0], [0.1, 0.2, 0.0, 0.1])
    starts = stacked(
        [state([(A, matches), (B, 1)], PLACES, {(0, 1): 0}), state([(C, 1), (A, matches)], PLACES, {(0, 1): 1})]
    )
    return dream(known, starts, seed=seed, **settings)


def walk(env: MatchLevelDreamEnv, steps: int, seed: int = 0) -> list[np.ndarray]:
    """What is seen and earned under random valid actions, terminate among them."""
    generator = torch.Generator().manual_seed(seed)
    seen = []
    for _ in range(steps):
        action = any_valid(env.states["count"], generator)
        leaving = torch.rand(len(action), generator=generator) < 0.1
        observation, reward, done, infos = env.step(torch.where(leaving, PLACES, action).numpy())
        last = [info["terminal_observation"] for info in infos if info]
        seen += [observation, reward, done, *last]
    return seen


def equal(one: list[np.ndarray], two: list[np.ndarray]) -> bool:
    return len(one) == len(two) and all(np.array_equal(a, b) for a, b in zip(one, two, strict=True))


def test_the_same_seed_dreams_the_same_and_another_seed_something_else():
    first, second, other = (walk(wandering(seed), 30) for seed in (0, 0, 1))
    assert equal(first, second)
    assert not equal(first, other)


def test_a_dream_goes_on_from_its_state_as_if_it_had_not_stopped():
    whole = wandering()
    walk(whole, 7)
    kept = {name: value.clone() for name, value in whole.state_dict().items()}
    resumed = wandering(seed=5)
    resumed.load_state_dict(kept)
    assert equal(walk(whole, 20, seed=1), walk(resumed, 20, seed=1))


def test_what_a_state_dict_holds_is_not_changed_by_the_next_steps():
    env = wandering()
    kept = env.state_dict()
    copies = {name: value.clone() for name, value in kept.items() if name not in ("steps", "generator")}
    walk(env, 5)
    assert all(torch.equal(kept[name], value) for name, value in copies.items())


def test_terminate_ends_a_dream_where_it_is_and_costs_nothing():
    """In half of the dreams; the last observation of those is the one before."""
    env = wandering()
    before = env.reset()
    action = np.where(np.arange(env.num_envs) % 2, PLACES, 0)
    _, reward, done, infos = env.step(action)
    np.testing.assert_array_equal(done, action == PLACES)
    assert (reward[done] == 0).all()
    assert (reward[~done] != 0).all()
    for index in np.flatnonzero(done):
        np.testing.assert_array_equal(infos[index]["terminal_observation"], before[index])
        assert not infos[index]["TimeLimit.truncated"]


def test_a_kind_that_is_not_there_cannot_be_taken():
    env = wandering()
    before = env.reset()
    after, reward, done, _ = env.step(np.full(env.num_envs, PLACES - 1))
    assert (reward == INVALID_ACTION_REWARD).all()
    assert not done.any()
    np.testing.assert_array_equal(after, before)


def test_rewards_add_up_to_the_drop_of_the_cost():
    env = wandering(matches=20, max_steps=10)
    env.reset()
    generator, total = torch.Generator().manual_seed(3), np.zeros(env.num_envs)
    for _ in range(3):
        _, reward, done, _ = env.step(any_valid(env.states["count"], generator).numpy())
        total += reward
        assert not done.any()
    np.testing.assert_allclose((env.states["begun"] - env.states["cost"]).numpy(), total, atol=1e-4)
    assert (total != 0).all()


def test_an_observation_shows_every_kind_that_is_there_and_nothing_of_the_others():
    """Before and after rewrites of a class: embedding, logit, scaled saving, log count, nearness; at last the gain."""
    known = precomputed({A: [Set([Entry(D, 3)], taken=2)]}, [0.3, -0.1, 0.2, 1.0])
    env = dream(known, state([(A, 2), (B, 1)], PLACES, {(0, 1): 3}, unit=0.5), gone_at_0=0, pessimism=0.0)
    view = env.layout.split(torch.from_numpy(env.reset()))
    assert view.classes.shape == (8, PLACES, EMBEDDING + 4)
    assert view.present.tolist() == [[True, True, False, False, False]] * 8
    reading = known.reading
    for place, (token, count, near) in enumerate([(A, 2, 0.0), (B, 1, 0.0)]):
        embedding, saving = reading.embedding[token].tolist(), reading.saving[token].item()
        expected = [*embedding, 0.0, 0.25 * saving, math.log1p(count), near]  # experts are as likely as not to take it
        torch.testing.assert_close(view.classes[0, place], torch.tensor(expected))
    assert (view.classes[:, 2:] == 0).all()
    assert (view.cost == 0).all()

    view = env.layout.split(torch.from_numpy(env.step(np.zeros(8, dtype=int))[0]))
    assert view.present[0].tolist() == [True, True, False, False, False], "those born are where those taken were"
    torch.testing.assert_close(view.classes[0, :2, -2], torch.log1p(torch.tensor([3.0, 1.0])))
    torch.testing.assert_close(view.classes[0, :2, -1], torch.tensor([1.0, 1 - 3 / FAR_AWAY]))
    assert view.cost[0].item() == pytest.approx(0.25 * math.asinh(2 * math.sinh(0.3)), abs=1e-5)
    assert (view.classes[:, 2:] == 0).all()
    assert env.observation_space.contains(env.reset()[0])


def test_the_fingerprint_tells_dreams_apart():
    assert wandering().fingerprint == wandering(seed=1).fingerprint
    assert wandering().fingerprint != wandering(pessimism=0.7).fingerprint


def test_an_agent_of_sb3_contrib_learns_by_the_masks_that_it_asks_for():
    """Half of the places are empty, so that an agent without masks would run into one of them within a few steps."""
    env = wandering()
    assert is_masking_supported(env)
    env.reset()
    for _ in range(20):
        masks = get_action_masks(env)
        assert masks.shape == (env.num_envs, PLACES + 1)
        assert np.array_equal(masks[:, :-1], env.states["count"].numpy() > 0)
        assert masks[:, -1].all()
        _, reward, _, _ = env.step([row.nonzero()[0][0] for row in masks])
        assert (reward > INVALID_ACTION_REWARD).all()

    rewards = Rewards(env)
    MaskablePPO("MlpPolicy", rewards, n_steps=16, batch_size=32, n_epochs=1, seed=0, device="cpu").learn(256)
    assert rewards.least > INVALID_ACTION_REWARD
    MaskablePPO("MlpPolicy", rewards, n_steps=16, seed=0, device="cpu").learn(256, use_masking=False)
    assert rewards.least == INVALID_ACTION_REWARD


class Rewards(VecEnvWrapper):
    """Remembers the least reward of any step."""

    least = 0.0

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        observation, reward, done, infos = self.venv.step_wait()
        self.least = min(self.least, float(reward.min()))
        return observation, reward, done, infos
