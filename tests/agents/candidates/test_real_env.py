"""The curriculum of episodes over candidates."""

import numpy as np
from support.candidate_agents import small_candidates

from rlflow.agents.candidates.memory import CandidateMemory, PriceScale
from rlflow.agents.candidates.real_env import CandidateEpisodes
from rlflow.representation.candidate_arrays import CandidateWriter


def test_a_share_of_episodes_begins_on_the_way_of_greedy_search() -> None:
    """Half of them, one after the other at another place; rewards add up from there, in percent of the original."""
    process = small_candidates()
    scale = PriceScale.of(process)
    env = CandidateEpisodes(process, CandidateMemory(CandidateWriter(), 64), scale, 8, greedy_starts=0.5)
    env.reset()
    way = [state.hash for state in process.greedy_states()]
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
