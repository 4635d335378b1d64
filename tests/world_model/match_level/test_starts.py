"""A dream begins in any state in which a rewrite was taken; of large ones, the part near the last rewrite is kept."""

import pytest
import torch
from support.random_token_rollouts import random_rollouts
from support.written_episodes import A, B, C, D, written_episode

from rlflow.representation.token_rollouts import FAR_AWAY, TokenEpisode
from rlflow.world_model.match_level.starts import TokenStarts, visited_states

EPISODES = (written_episode([A, A], [A, B]), written_episode([B, C], [B], unit_percent=2.0))


def classes(starts: TokenStarts, row: int) -> dict[int, int]:
    """The tokens of a state with their numbers."""
    states = starts.states
    return {t: c for t, c in zip(states.token[row].tolist(), states.count[row].tolist(), strict=True) if c}


def test_states_in_closed_form():
    """The last state of an episode is left out, since nothing was taken there."""
    starts = visited_states(EPISODES, max_kinds=4)
    assert [classes(starts, row) for row in range(3)] == [{A: 2}, {B: 2}, {B: 1, C: 1}]
    assert starts.initial.tolist() == [True, False, True]
    assert starts.states.cost.tolist() == pytest.approx([100, 94, 100])
    assert starts.states.unit.tolist() == [1, 1, 2]


def test_what_is_beyond_the_limit_is_the_farthest_from_the_last_rewrite():
    """After A, the B that it bore lies at its place, D two edges away."""
    (episode,) = [written_episode([A, D], [A, B])]
    starts = visited_states([episode], max_kinds=1)
    assert classes(starts, 0) in ({A: 1}, {D: 1})
    assert classes(starts, 1) == {B: 1}


def test_of_kinds_equally_far_those_that_save_most_are_kept():
    assert classes(visited_states([written_episode([A, B, C, D], [A])], max_kinds=2), 0) == {A: 1, D: 1}


def _rows(episodes: tuple[TokenEpisode, ...]) -> int:
    return sum(episode.num_steps for episode in episodes)


@pytest.mark.parametrize("seed", range(3))
def test_kinds_and_distances_are_those_of_the_state(seed: int):
    """On random episodes, whose classes are in any order; places that are empty are far from everything."""
    episodes = random_rollouts(seed, episodes=4, steps=5).episodes
    starts, row = visited_states(episodes, max_kinds=12), 0
    assert len(starts.initial) == _rows(episodes) > 4
    for episode in episodes:
        for state in episode.states[:-1]:
            assert classes(starts, row) == dict(zip(state.token.tolist(), state.count.tolist(), strict=True))
            order = [
                state.token.tolist().index(token) for token in starts.states.token[row].tolist()[: len(state.token)]
            ]
            between, filled = starts.states.distance[row], len(order)
            assert between[:filled, :filled].tolist() == state.distance[order][:, order].tolist()
            assert (between[filled:] == FAR_AWAY).all()
            assert (between[:, filled:] == FAR_AWAY).all()
            row += 1
    assert torch.is_floating_point(starts.states.cost)
