"""Episodes over candidates side by side, beside the environment of Gymnasium on the same process."""

import numpy as np
from support.candidate_agents import EPISODES, small_candidates
from support.walks import LIBRARY, REWRITER

from rlflow.agents.candidates.memory import CandidateMemory, PriceScale
from rlflow.agents.candidates.real_env import CandidateEpisodes
from rlflow.environments import CandidateEnv
from rlflow.representation.candidate_arrays import CandidateWriter

TERMINATE = EPISODES.max_candidates


def env_of(num_envs: int = 2) -> CandidateEpisodes:
    process = small_candidates()
    return CandidateEpisodes(process, CandidateMemory(CandidateWriter(), 64), PriceScale.of(process), num_envs)


def test_an_episode_is_that_of_the_environment() -> None:
    """The first episode takes candidate 2, 1, 0, ...; the second stops at once and begins anew."""
    env = env_of()
    alone = CandidateEnv(env.process.start().graph, LIBRARY, env.process.evaluator.cost_model, config=EPISODES)
    alone.reset()
    first = env.reset()
    assert (first[0] == first[1]).all()
    for action in (2, 1, 0, 3):
        observation, reward, done, infos = env.step(np.array([action, TERMINATE]))
        _, expected, terminated, truncated, _ = alone.step(action)
        assert reward[0] == np.float32(expected)
        assert done.tolist() == [truncated or terminated, True]
        assert reward[1] == 0.0
        assert (observation[1] == first[1]).all()
        assert infos[1]["TimeLimit.truncated"] is False
    assert done[0]
    assert infos[0]["TimeLimit.truncated"] is True
    assert infos[0]["terminal_observation"] != first[0]
    assert (observation[0] == first[0]).all()
    assert env.rewrites == 4


def test_what_is_not_there_costs_a_hundred_and_changes_nothing() -> None:
    env = env_of(1)
    first = env.reset()
    state = env._episodes[0].state
    env._episodes[0].visited[-1] = type(state)(**{**vars_of(state), "candidates": state.candidates[:3]})
    observation, reward, done, _ = env.step(np.array([5]))
    assert (reward[0], done[0]) == (-100.0, False)
    assert (observation == first).all()
    assert env.rewrites == 0


def vars_of(state: object) -> dict[str, object]:
    return {name: getattr(state, name) for name in state.__dataclass_fields__}  # type: ignore[attr-defined]


def test_a_share_of_episodes_begins_on_the_way_of_greedy_search() -> None:
    """Half of them, one after the other at another place; rewards add up from there, in percent of the original."""
    process = small_candidates()
    scale = PriceScale.of(process)
    env = CandidateEpisodes(process, CandidateMemory(CandidateWriter(), 64), scale, 8, greedy_starts=0.5)
    env.reset()
    way = [state.hash for state in process.greedy_way()]
    assert len(way) == 4
    begun = [way.index(episode.state.hash) for episode in env._episodes]
    assert begun[::2] == [0, 0, 0, 0]
    assert sorted(begun[1::2]) == [0, 1, 2, 3]
    before = [episode.state.runtime_ms for episode in env._episodes]
    _, reward, _, _ = env.step(np.full(8, 2))
    drop = [old - episode.state.runtime_ms for old, episode in zip(before, env._episodes, strict=True)]
    np.testing.assert_allclose(reward, [process.percent(ms) for ms in drop], rtol=1e-5, atol=1e-6)
    again = CandidateEpisodes(process, CandidateMemory(CandidateWriter(), 64), scale, 8, greedy_starts=0.5)
    again.load_state_dict(env.state_dict())
    assert [e.state.hash for e in again._episodes] == [e.state.hash for e in env._episodes]


def test_episodes_go_on_from_what_they_took() -> None:
    env, again = env_of(), env_of()
    env.reset()
    env.step(np.array([2, 5]))
    seen, *_ = env.step(np.array([0, 1]))
    again.load_state_dict(env.state_dict())
    assert again.rewrites == env.rewrites == 4
    one, other = (of.step(np.array([1, 2])) for of in (env, again))
    for left, right in zip(one[:3], other[:3], strict=True):
        np.testing.assert_array_equal(left, right)
    assert (seen != one[0]).all()
    assert REWRITER is env.process.evaluator.rewriter
