"""The area under the curve, in closed form and by the pairs that define it; the shares of rules."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.detours import ASTRAY, INTO, OUT, detour_process, detours, rules_astray, walked
from support.taught import lessons_of
from support.written_episodes import A, B, C, D, written_episode

from rlflow.errors import InputError
from rlflow.representation.token_rollouts import Demonstration, TokenEpisode
from rlflow.world_model.match_level.expert_metrics import auc, rule_shares

WALK = written_episode((A, A, B), (A,), most=1)
"""A x 2, B x 1; then A x 1, B x 2."""


def shown(*taken: list[float]) -> TokenEpisode:
    """The walk with these shares of the classes A and B in its two states."""
    shares = tuple(np.array(share, np.float32) for share in taken)
    return replace(WALK, demonstration=Demonstration(shares, tuple(np.zeros_like(share) for share in shares)))


def scores(**of: float) -> np.ndarray:
    return np.array([of.get(name, 0.0) for name in "ABCD"])


def test_scores_that_follow_the_expert_are_perfect_and_their_opposite_is_none():
    episode = shown([1.0, 0.0], [1.0, 0.0])
    assert auc(episode, scores(A=2.0, B=1.0)) == 1.0
    assert auc(episode, scores(A=1.0, B=2.0)) == 0.0


def test_scores_that_tell_nothing_are_chance():
    assert auc(shown([1.0, 0.0], [1.0, 0.0]), scores()) == 0.5
    assert auc(shown([0.5, 0.5], [0.5, 0.5]), scores(A=1.0)) == pytest.approx(0.5)


def test_matches_count_and_not_kinds():
    """Taken: both A at first and none then. Of the pairs of a taken and a passed one, 2 x 1 are with a B of the first
    state, 2 x 2 with one of the second, both below, and 2 x 1 with the other A, which scores the same.
    """
    assert auc(shown([1.0, 0.0], [0.0, 0.0]), scores(A=1.0)) == pytest.approx((2 * 3 + 0.5 * 2 * 1) / (2 * 4))


four = partial(st.lists, min_size=4, max_size=4)


@given(four(st.floats(0, 1, width=16)), four(st.integers(-3, 3)))
def test_it_is_the_share_of_pairs_that_are_ranked_rightly(taken: list[float], score: list[int]):
    episode, of = shown(taken[:2], taken[2:]), np.array(score, np.float64)
    token, count = np.array([A, B, A, B]), np.array([2, 1, 1, 2])
    assert [state.count.tolist() for state in episode.states] == [[2, 1], [1, 2]]
    share = np.array(taken, np.float32).astype(np.float64)
    weight = np.outer(count * share, count * (1 - share))
    right = np.sign(of[token][:, None] - of[token][None]) / 2 + 0.5
    if weight.sum() > 0:
        assert auc(episode, of) == pytest.approx((weight * right).sum() / weight.sum())
    else:
        assert np.isnan(auc(episode, of))


def test_an_episode_that_no_expert_played_is_refused():
    with pytest.raises(InputError, match="no demonstration"):
        auc(WALK, scores())


def test_the_shares_of_rules_are_those_of_their_matches():
    """The expert takes the only match of each rule on the way; rules that lead astray are passed."""
    rules = rules_astray()
    rollouts = lessons_of(detour_process(1, rules), [walked(detours(1), (OUT, INTO), rules)])
    shares = rule_shares(rollouts)
    assert {shares[rules.get(name).id] for name in (OUT, INTO)} == {1.0}
    assert {shares[rules.get(name).id] for name in ASTRAY if rules.get(name).id in shares} == {0.0}
    assert len(shares) > 2, "some rules that lead astray have matches"
    played = replace(rollouts, episodes=(replace(rollouts.episodes[0], demonstration=None),))
    assert rule_shares(played) == {}


def test_no_other_token_counts():
    """C and D are in no state."""
    episode = shown([1.0, 0.0], [0.5, 0.0])
    assert auc(episode, scores(A=1.0, C=9.0, D=-9.0)) == auc(episode, scores(A=1.0))
    assert {C, D}.isdisjoint(np.concatenate([state.token for state in episode.states]))
