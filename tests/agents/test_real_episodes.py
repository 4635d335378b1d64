"""Episodes side by side, of every formulation that trains on a real graph: beside one episode alone, and resumed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.candidate_agents import small_candidates
from support.formulations import token_model
from support.token_worlds import small_process

from rlflow.agents.candidates.memory import CandidateMemory, PriceScale
from rlflow.agents.candidates.real_env import CandidateEpisodes
from rlflow.agents.match_level.pointer_config import RealEpisodesConfig
from rlflow.agents.match_level.real_env import real_episodes
from rlflow.agents.real_episodes import RealEpisodes
from rlflow.environments.end_to_end import EndToEnd
from rlflow.environments.episode import Episode
from rlflow.environments.rewards import Reward, RewardConfig, reward_of
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.representation.candidate_arrays import CandidateWriter
from rlflow.runtime.timing.savings import Saving

EPISODES, STEPS = 3, 4
NOT_THERE = -1
Make = Callable[..., RealEpisodes[Any]]


def kinds(reward: Reward | None = None) -> RealEpisodes[Any]:
    config = RealEpisodesConfig(num_envs=EPISODES, max_steps=STEPS, max_kinds=64)
    return real_episodes(small_process(), token_model(), config, reward)


def candidates(reward: Reward | None = None) -> RealEpisodes[Any]:
    """Half of the episodes begin on greedy search's way."""
    process, memory = small_candidates(), CandidateMemory(CandidateWriter(), 64)
    return CandidateEpisodes(process, memory, PriceScale.of(process), EPISODES, greedy_starts=0.5, reward=reward)


@pytest.fixture(params=[kinds, candidates])
def make(request: pytest.FixtureRequest) -> Make:
    return request.param  # type: ignore[no-any-return]


def walk(env: RealEpisodes[Any], steps: int, seed: int = 0) -> list[tuple[Any, ...]]:
    """What comes of drawn choices, of each episode its own."""
    rng = np.random.default_rng(seed)
    return [
        env.step(np.array([rng.integers(len(env.process.choices(episode.state))) for episode in env._episodes]))
        for _ in range(steps)
    ]


def test_each_is_an_episode_of_its_own(make: Make) -> None:
    """The first one terminates, the second does what is not there, the third is the same without its company."""
    env = make()
    first = began = env.reset()
    alone = Episode(env.process, env.reward, STEPS, list(env._episodes[2].visited))
    for number in range(STEPS):
        outcome = alone.act(number)
        observation, reward, done, infos = env.step(np.array([env.max_choices, NOT_THERE, number]))
        assert (reward.tolist(), done.tolist()) == (
            [0.0, -100.0, np.float32(outcome.reward)],
            [True, number == STEPS - 1, number == STEPS - 1],
        )
        assert infos[0]["TimeLimit.truncated"] is False
        np.testing.assert_array_equal(infos[0]["terminal_observation"], began[0])
        began = observation
        if number < STEPS - 1:
            np.testing.assert_array_equal(observation[1], first[1])
            np.testing.assert_array_equal(observation[2], env.process.observe(alone.state))
    assert infos[2]["TimeLimit.truncated"] is True
    assert structural_hash(infos[2]["final_graph"]) == alone.state.hash
    np.testing.assert_array_equal(infos[2]["terminal_observation"], env.process.observe(alone.state))
    assert env.rewrites == len(list(alone.steps())) >= STEPS, "an invalid action and terminate are none"


def test_masks_admit_the_choices_that_are_there_and_terminate(make: Make) -> None:
    env = make()
    env.reset()
    for _ in range(4):
        masks = np.stack(env.env_method("action_masks"))
        numbers = [len(env.process.choices(episode.state)) for episode in env._episodes]
        assert masks.sum(axis=1).tolist() == [number + 1 for number in numbers]
        assert masks[:, -1].all()
        _, reward, _, _ = env.step([number - 1 for number in numbers])
        assert (reward > env.reward.config.invalid).all()


@pytest.mark.parametrize(("kind", "first"), [("incremental", True), ("terminal", False), ("weighted", True)])
def test_any_reward_adds_up_to_the_drop_of_the_price(make: Make, kind: str, first: bool) -> None:
    """`terminal` comes with the last step alone. Not vacuous: episodes lead elsewhere, and each changes the price."""
    env = make(reward_of(RewardConfig(kind, alpha=1, beta=0)))
    env.reset()
    episodes = list(env._episodes)
    rewards = [reward for _, reward, *_ in walk(env, STEPS)]
    start_ms = [episode.visited[0].runtime_ms for episode in episodes]
    begun_ms = [episode.visited[-1 - STEPS].runtime_ms for episode in episodes]
    ended_ms = np.array([episode.state.runtime_ms for episode in episodes])
    before_ms = np.array(start_ms if kind == "terminal" else begun_ms)
    np.testing.assert_allclose(sum(rewards), 100 * (before_ms - ended_ms) / start_ms, atol=1e-4)
    assert len({*ended_ms.tolist()}) == EPISODES
    assert bool(np.any(rewards[0])) == first


def by_weight(start: Graph, graph: Graph, config: RewardConfig) -> Saving:
    """Ten percent for each node that went, without noise."""
    saved = 10.0 * (len(start.order) - len(graph.order))
    return Saving(saved, saved, saved)


def test_a_measured_reward_is_shared_and_timed_once(make: Make) -> None:
    """Nothing is timed twice, nor again after a resumption, where no reward is asked for once more."""
    config = RewardConfig("end_to_end", every=2)
    env, resumed = make(EndToEnd(config, by_weight)), make(EndToEnd(config, by_weight))
    env.reset()
    rewards = [reward for _, reward, *_ in walk(env, 2)]
    assert np.any(rewards)
    resumed.load_state_dict(env.state_dict())
    assert resumed.reward.figures() == env.reward.figures()
    graphs = [episode.state.graph for episode in env._episodes]
    _, last, done, infos = resumed.step(np.full(EPISODES, env.max_choices))
    assert done.all()
    np.testing.assert_array_equal(last, 0.0)
    assert [structural_hash(info["final_graph"]) for info in infos] == [structural_hash(graph) for graph in graphs]
    assert resumed.reward.figures()["measurements"] == env.reward.figures()["measurements"]


def test_it_goes_on_from_what_it_stored(make: Make) -> None:
    """In the middle of episodes, one of which is a step behind; to play them again does not count."""
    env, other = make(), make()
    env.reset()
    walk(env, 2)
    env.step(np.array([env.max_choices, 0, NOT_THERE]))
    other.load_state_dict(env.state_dict())
    assert other.rewrites == env.rewrites >= 7
    assert other.process.evaluator.effort.rewrites == env.process.evaluator.effort.rewrites
    for here, there in zip(walk(env, 5), walk(other, 5), strict=True):
        for one, same in zip(here[:3], there[:3], strict=True):
            np.testing.assert_array_equal(one, same)
    assert env.fingerprint(1) == other.fingerprint(1) != other.fingerprint(2)
