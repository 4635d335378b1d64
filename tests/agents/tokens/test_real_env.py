"""Episodes on a real graph, as a policy sees them: rewards, masks and ends, beside the process and the dream."""

import numpy as np
import pytest
import torch
from rlflow.agents.tokens.real_observation import RealObserver
from support.token_worlds import SMALL, small_process, small_token_rollouts
from support.walks import LIBRARY

from rlflow.agents.tokens.config import TokenControllerConfig
from rlflow.agents.tokens.controller import TokenControllerArguments
from rlflow.agents.tokens.dream_training import untrained
from rlflow.agents.tokens.real_env import RealEpisodesConfig, RealTokenEnv, real_return
from rlflow.environments.end_to_end import EndToEnd
from rlflow.environments.rewards import RewardConfig, reward_of
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.runtime.timing.savings import Saving
from rlflow.world_model.dream_env import INVALID_ACTION_REWARD
from rlflow.world_model.tokens.birth_sets import birth_sets
from rlflow.world_model.tokens.config import TokenDreamConfig
from rlflow.world_model.tokens.dream_env import TokenDreamEnv
from rlflow.world_model.tokens.knowledge import Knowledge
from rlflow.world_model.tokens.model import TokenModelArguments, TokenWorldModel
from rlflow.world_model.tokens.starts import visited_states

CONFIG = RealEpisodesConfig(num_envs=3, max_steps=4, max_kinds=64)


@pytest.fixture(scope="module")
def model() -> TokenWorldModel:
    """What V reads does not matter here, so it is not fitted."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        arguments = TokenModelArguments(small_token_rollouts().vocabulary, LIBRARY.hash, SMALL)
        return TokenWorldModel(arguments).eval().requires_grad_(False)


def env_of(model: TokenWorldModel, config: RealEpisodesConfig = CONFIG) -> RealTokenEnv:
    return RealTokenEnv(small_process(), RealObserver(model), config)


def present(env: RealTokenEnv, observation: np.ndarray) -> np.ndarray:
    """(B, K) bool: the mask that a policy reads."""
    return env.layout.split(torch.from_numpy(observation)).present.numpy()


def walk(env: RealTokenEnv, observation: np.ndarray, steps: int, seed: int = 0) -> list[tuple[np.ndarray, ...]]:
    """What comes of kinds that are drawn among those that are there."""
    rng, seen = np.random.default_rng(seed), []
    for _ in range(steps):
        action = np.array([rng.choice(np.flatnonzero(row)) for row in present(env, observation)])
        observation, reward, done, _ = env.step(action)
        seen.append((observation, reward, done))
    return seen


def test_rewards_add_up_to_the_drop_of_the_price(model: TokenWorldModel) -> None:
    """Three episodes that are led elsewhere, by 9 rewrites; not vacuous: each changes the price."""
    env = env_of(model)
    earned = sum(reward for _, reward, _ in walk(env, env.reset(), 3))
    drops = [100.0 - episode.situation.cost for episode in env._episodes]
    np.testing.assert_allclose(earned, drops, atol=1e-4)
    assert len({*drops}) == 3
    assert env.rewrites == 9


@pytest.mark.parametrize(("kind", "first"), [("incremental", True), ("terminal", False), ("weighted", True)])
def test_any_reward_will_do(model: TokenWorldModel, kind: str, first: bool) -> None:
    """What is computed of costs is computed of the graphs on the way; `terminal` comes with the last step alone."""
    env = RealTokenEnv(small_process(), RealObserver(model), CONFIG, reward_of(RewardConfig(kind, alpha=1, beta=0)))
    rewards = [reward for _, reward, _ in walk(env, env.reset(), CONFIG.max_steps)]
    by_price = [reward for _, reward, _ in walk(env_of(model), env_of(model).reset(), CONFIG.max_steps)]
    np.testing.assert_allclose(sum(rewards), sum(by_price), atol=1e-4)
    assert bool(np.any(rewards[0])) == first


def by_weight(start: Graph, graph: Graph, config: RewardConfig) -> Saving:
    """Ten percent for each node that went, without noise."""
    saved = 10.0 * (len(start.order) - len(graph.order))
    return Saving(saved, saved, saved)


def test_a_measured_reward_is_shared_by_episodes_side_by_side(model: TokenWorldModel) -> None:
    """Each adds up to what its last graph saves; nothing is timed twice, nor again after a resumption."""
    config = RewardConfig("end_to_end", every=2)
    env = RealTokenEnv(small_process(), RealObserver(model), CONFIG, EndToEnd(config, by_weight))
    rewards = [reward for _, reward, _ in walk(env, env.reset(), 2)]
    graphs = [episode.situation.graph for episode in env._episodes]
    np.testing.assert_allclose(rewards[0], 0.0)
    np.testing.assert_allclose(rewards[1], [by_weight(env.process.start().graph, g, config).percent for g in graphs])
    assert np.any(rewards[1])
    assert env.reward.figures()["measurements"] == len({structural_hash(graph) for graph in graphs})

    resumed = RealTokenEnv(small_process(), RealObserver(model), CONFIG, EndToEnd(config, by_weight))
    resumed.load_state_dict(env.state_dict())
    assert resumed.reward.figures() == env.reward.figures(), "episodes that are played again are not rewarded again"
    terminate = np.full(CONFIG.num_envs, CONFIG.max_kinds)
    _, last, done, infos = resumed.step(terminate)
    assert done.all()
    np.testing.assert_array_equal(last, 0.0)
    assert [structural_hash(info["final_graph"]) for info in infos] == [structural_hash(graph) for graph in graphs]
    assert resumed.reward.figures()["measurements"] == env.reward.figures()["measurements"]


def test_it_ends_at_the_horizon_and_by_terminate_and_begins_anew(model: TokenWorldModel) -> None:
    env = env_of(model)
    first = env.reset()
    *_, (observation, _, done) = walk(env, first, CONFIG.max_steps)
    assert done.all()
    np.testing.assert_array_equal(observation, first)

    step = walk(env, first, 1)[0][0]
    _, reward, done, infos = env.step(np.full(3, CONFIG.max_kinds))
    assert (reward == 0).all()
    assert done.all()
    for place, info in enumerate(infos):
        np.testing.assert_array_equal(info["terminal_observation"], step[place])
        assert info["TimeLimit.truncated"] is False
    assert env.rewrites == 3 * (CONFIG.max_steps + 1), "to terminate is no rewrite"


def test_what_is_not_there_costs_a_hundred_and_changes_nothing(model: TokenWorldModel) -> None:
    env = env_of(model)
    first = env.reset()
    place = int(np.flatnonzero(~present(env, first)[0])[0])
    for number in range(CONFIG.max_steps):
        observation, reward, done, infos = env.step(np.full(3, place))
        assert (reward == INVALID_ACTION_REWARD).all()
        np.testing.assert_array_equal(observation, first)
        assert done.all() == (number + 1 == CONFIG.max_steps), "or it would never end"
    assert infos[0]["TimeLimit.truncated"] is True
    assert env.rewrites == 0


def test_it_goes_on_from_what_it_stored(model: TokenWorldModel) -> None:
    """In the middle of episodes, one of which is a step behind."""
    env, other = env_of(model), env_of(model)
    walk(env, env.reset(), 2)
    observation, *_ = env.step(np.array([CONFIG.max_kinds, 0, CONFIG.max_kinds]))
    other.load_state_dict(env.state_dict())
    assert other.rewrites == env.rewrites == 7
    for here, there in zip(walk(env, observation, 5), walk(other, observation, 5), strict=True):
        for one, same in zip(here, there, strict=True):
            np.testing.assert_array_equal(one, same)


def test_of_many_kinds_those_next_to_the_last_rewrite_are_shown(model: TokenWorldModel) -> None:
    """A policy that sees eight kinds sees eight of the nearest; of the others it can do none."""
    few = RealEpisodesConfig(num_envs=1, max_steps=8, max_kinds=8)
    env, checked = env_of(model, few), 0
    for observation, *_ in walk(env, env.reset(), 6):
        near = env._episodes[0].seen.near
        shown = env._episodes[0].shown
        assert present(env, observation).sum() == len(shown) == min(8, len(near))
        assert sorted(near[shown]) == sorted(near)[:8]
        checked += len(near) > 8
    assert checked > 3


def test_a_dream_that_begins_at_the_original_looks_the_same(model: TokenWorldModel) -> None:
    """The kinds stand in another order."""
    rollouts = small_token_rollouts()
    starts = visited_states(rollouts.episodes, CONFIG.max_kinds)
    sets = birth_sets(rollouts.episodes, 8).sets
    config = TokenDreamConfig(num_envs=1, max_kinds=CONFIG.max_kinds)
    dream = TokenDreamEnv(
        model.memory, Knowledge.of(model.memory, model.read(rollouts), sets, 4), starts, config, seed=0
    )
    original = next(
        place
        for place, (cost, initial) in enumerate(zip(starts.states.cost.tolist(), starts.initial.tolist(), strict=True))
        if initial and cost == 100.0
    )
    dreamed = dream.observe(dream.start_states(torch.tensor([original])))[0]
    real = env_of(model, CONFIG).reset()[0]
    rows = [sorted(map(tuple, np.round(one[:-1].reshape(CONFIG.max_kinds, -1), 4))) for one in (dreamed, real)]
    np.testing.assert_allclose(rows[0], rows[1], atol=1e-3)
    assert dreamed[-1] == real[-1]


def test_the_return_of_a_controller_is_what_its_episode_saves(model: TokenWorldModel) -> None:
    config = TokenControllerConfig(width=8, terminate_bias=-20.0)
    controller = untrained(TokenControllerArguments.of(model, config), seed=0)
    process = small_process()
    trial = real_return(process, model, controller, 5)
    assert trial.rewrites == 5
    env = RealTokenEnv(process, RealObserver(model), RealEpisodesConfig(num_envs=1, max_steps=5))
    observation, total = env.reset(), 0.0
    for _ in range(5):
        observation, reward, *_ = env.step(controller.act(observation))
        total += float(reward[0])
    assert trial.score_percent == pytest.approx(total)
    assert abs(total) > 1e-6
