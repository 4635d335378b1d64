"""The birth sets of episodes: gathered once each, counted, and cut where they are too large."""

from dataclasses import replace

import numpy as np
import torch
from support.random_token_rollouts import random_rollouts
from support.written_episodes import A, B, C, D, written_episode

from rlflow.representation.token_rollouts import TokenEpisode, TokenState, TokenStep
from rlflow.world_model.match_level.match_deltas import NONE, MatchDeltas, match_deltas


def test_equal_sets_are_one_with_the_number_of_times():
    """A bears B twice, B bears C and D twice, C and D bear nothing: four sets of six steps, a rewrite each."""
    episodes = [written_episode([A], [A, B, C]), written_episode([A], [A, B, D])]
    found = match_deltas(episodes, largest=8)
    assert found.of_step.tolist() == [0, 1, 2, 0, 1, 3]
    sets = found.sets
    assert sets.parent.tolist() == [A, B, C, D]
    assert sets.seen.tolist() == [2, 2, 1, 1]
    assert sets.taken.tolist() == [1, 1, 1, 1]
    assert sets.token.tolist() == [[B, NONE], [C, D], [NONE, NONE], [NONE, NONE]]
    assert sets.count.tolist() == [[1, 0], [1, 1], [0, 0], [0, 0]]
    assert sets.distance[1].tolist() == [[0, 2], [2, 0]]
    assert (sets.before == NONE).all()
    assert len(sets) == 4


def test_sets_of_other_numbers_of_rewrites_are_others():
    """Two A bear two B, one bears one. A step that leaves matches of its class has no set."""
    sets = match_deltas([written_episode([A, A], [A]), written_episode([A], [A])], largest=8).sets
    assert sets.taken.tolist() == [2, 1]
    assert sets.count.tolist() == [[2], [1]]
    one = written_episode([A, A], [A])
    only = replace(one.steps[0], taken=1, born=np.array([[1, 2]]))
    left = TokenState(np.array([A, B]), np.array([1, 2]), np.array([1, 2]), *vars_of(one.states[1], 2))
    assert not len(match_deltas([TokenEpisode(0, 1.0, (one.states[0], left), (only,), False)], largest=8).sets)


def vars_of(like: TokenState, classes: int) -> tuple[np.ndarray, np.ndarray, float, str]:
    """The distances, savings, cost and hash of a state of so many classes."""
    distance = np.where(np.eye(classes, dtype=bool), 0, 2).astype(np.int8)
    return distance, np.zeros(classes, np.float32), like.cost, like.hash


def state(token: list[int], count: list[int]) -> TokenState:
    distance = np.where(np.eye(len(token), dtype=bool), 0, 1).astype(np.int8)
    return TokenState(
        np.array(token), np.array(count), np.array(count), distance, np.zeros(len(token), np.float32), 1.0, "a"
    )


def turning() -> TokenEpisode:
    """Token 9 is taken: two matches of 5 become 4, and 7, 8 and 8 again are born."""
    before, after = state([9, 5, 6], [1, 3, 1]), state([5, 6, 8, 7, 4], [1, 1, 2, 1, 2])
    step = TokenStep(
        chosen=0,
        taken=1,
        reward=0.0,
        distance=np.array([0, 1, 1], np.int8),
        gone=np.zeros(3, np.int64),
        turned=np.array([[1, 4, 2]]),
        born=np.array([[2, 2], [3, 1]]),
    )
    return TokenEpisode(0, 1.0, (before, after), (step,), terminated=False)


def test_matches_that_turned_come_with_what_they_looked_like():
    sets = match_deltas([turning()], largest=8).sets
    assert sets.parent.tolist() == [9]
    assert sets.token.tolist() == [[7, 8, 4]]
    assert sets.before.tolist() == [[NONE, NONE, 5]]
    assert sets.count.tolist() == [[1, 2, 2]]


def test_of_a_large_set_those_that_are_born_are_kept():
    sets = match_deltas([turning()], largest=2).sets
    assert sets.token.tolist() == [[7, 8]]
    assert match_deltas([turning()], largest=1).sets.token.tolist() == [[7]]
    assert match_deltas([turning()], largest=0).sets.token.shape == (1, 0)


def test_sets_that_differ_in_anything_are_not_mixed_up():
    """A set of another parent, one with what turned, one with other numbers."""
    one = turning()
    other_parent = TokenEpisode(0, 1.0, (state([3, 5, 6], [1, 3, 1]), one.states[1]), one.steps, False)
    assert len(match_deltas([one, other_parent, one], largest=8).sets) == 2
    assert match_deltas([one, other_parent, one], largest=8).sets.seen.tolist() == [2, 1]


def told(sets: MatchDeltas, row: int) -> tuple[int, list[tuple[int, int, int]]]:
    filled = sets.token[row] != NONE
    columns = (getattr(sets, name)[row][filled].tolist() for name in ("token", "before", "count"))
    return int(sets.parent[row]), sorted(zip(*columns, strict=True))


def test_every_step_of_drawn_episodes_has_its_set():
    episodes = [episode for seed in range(5) for episode in random_rollouts(seed).episodes]
    found = match_deltas(episodes, largest=100)
    steps = [
        (before, step, after)
        for episode in episodes
        for before, step, after in zip(episode.states, episode.steps, episode.states[1:], strict=False)
    ]
    steps = [trio for trio in steps if trio[1].is_whole(trio[0])]
    assert len(steps) == len(found.of_step) > 20
    for (before, step, after), row in zip(steps, found.of_step.tolist(), strict=True):
        born = [(int(after.token[place]), NONE, count) for place, count in step.born.tolist()]
        turned = [(int(after.token[b]), int(before.token[a]), number) for a, b, number in step.turned.tolist()]
        assert told(found.sets, row) == (int(before.token[step.chosen]), sorted(born + turned))
        assert found.sets.taken[row] == step.taken
    assert torch.equal(torch.bincount(found.of_step).float(), found.sets.seen)


def test_no_steps_have_no_sets():
    assert len(match_deltas([], largest=3).sets) == 0
