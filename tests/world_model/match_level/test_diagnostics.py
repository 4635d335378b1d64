"""Measures of predicted savings: perfect ones, trivial ones, and wrong ones of which the error is known."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr
from support.written_episodes import SAVED, A, B, written_episode

from rlflow.errors import InputError
from rlflow.representation.token_rollouts import TokenEpisode, TokenRollouts, TokenState
from rlflow.world_model.match_level.diagnostics import (
    agreement,
    by_rule,
    earned,
    labels,
    rule_means,
    saving_report,
    savings,
)
from rlflow.world_model.match_level.model import MatchLevelModel

RULE_OF = ("fuse", "fuse", "fuse", "fold", "fold", "move")
SAVES = np.array([4.0, 1.0, -2.0, 3.0, 1.0, 0.0])
"""What tokens 0 to 5 save, in units."""


def episode(*states: Sequence[int], unit: float = 1.0, counts: Sequence[int] | None = None) -> TokenEpisode:
    """States with these tokens, each alone in an episode would do as well; `counts` of the tokens of the only one."""
    assert len(states) == 1
    token = np.array(states[0], np.int64)
    distance = np.where(np.eye(len(token), dtype=bool), 0, 1).astype(np.int8)
    number = np.array(counts if counts is not None else [1] * len(token), np.int64)
    state = TokenState(token, number, number, distance, (SAVES[token] * unit).astype(np.float32), 100.0, "a")
    return TokenEpisode(0, unit, (state,), (), terminated=False)


EPISODES = (episode([0, 1, 2, 3]), episode([4, 3, 5], unit=0.5), episode([2, 5]))
MEANS = by_rule(RULE_OF, {"fuse": 0.0, "fold": 2.0, "move": 0.0})


def test_what_classes_earned_is_averaged_over_their_rewrites():
    """Three A at once, and one of another episode that saved 4 units more than it is said to alone; B once."""
    more = written_episode([A], [A], unit_percent=2.0)
    more = replace(more, steps=(replace(more.steps[0], reward=2 * (SAVED[A] + 4)),))
    token, saving = earned([written_episode([A, A, A], [A, B]), more])
    assert dict(zip(token.tolist(), saving.tolist(), strict=True)) == {A: SAVED[A] + 1, B: SAVED[B]}


def test_labels_are_in_units():
    """A saving of 0.5 percent is one unit where this is half a percent."""
    known = labels(EPISODES)
    assert known.token.tolist() == [0, 1, 2, 3, 4, 3, 5, 2, 5]
    assert known.saving.tolist() == SAVES[known.token].tolist()
    assert known.unit_percent.tolist() == [1.0] * 4 + [0.5] * 3 + [1.0] * 2
    assert known.state.tolist() == [0] * 4 + [1] * 3 + [2] * 2


def test_perfect_predictions():
    """Not vacuous: those of rules, of chance and of nothing are worse."""
    report = saving_report(EPISODES, RULE_OF, SAVES, MEANS)
    assert report["r2"] == 1
    assert report["within_rule"] == pytest.approx(1)
    assert report["spearman"] == pytest.approx(1)
    assert report["regret_1"] == report["regret_4"] == 0
    assert report["r2_rule_mean"] < 1
    assert report["spearman_rule_mean"] < 1
    assert report["regret_1_random"] > 0.1 < report["regret_1_rule_mean"]


def test_cases_are_those_in_which_there_is_something_to_tell():
    """Two states have something to gain; savings within `move` do not differ."""
    report = saving_report(EPISODES, RULE_OF, SAVES, MEANS)
    assert report["regret_cases"] == 2
    assert report["spearman_cases"] == 3
    assert report["r2_cases"] == 9
    assert report["within_rule_cases"] == 7
    alike = saving_report([episode([1, 4])], RULE_OF, SAVES, MEANS)
    assert (alike["spearman_cases"], alike["regret_cases"]) == (0, 1)
    assert np.isnan(alike["spearman"])
    hopeless = saving_report([episode([2, 5])], RULE_OF, SAVES, MEANS)
    assert hopeless["regret_cases"] == 0
    assert np.isnan(hopeless["regret_1"])


def test_explained_variance_in_closed_form():
    """Savings 4, 1, 1 with one unit too much for the first: 1 - 1 / (4 + 1 + 1); the mean explains nothing."""
    one = [episode([0, 1], counts=[1, 2])]
    wrong = SAVES + np.array([1, 0, 0, 0, 0, 0])
    report = saving_report(one, RULE_OF, wrong, np.full(6, 2.0))
    assert report["r2"] == pytest.approx(5 / 6)
    assert report["r2_rule_mean"] == pytest.approx(0)
    assert report["r2_zero"] == pytest.approx(1 - 18 / 6)


def test_correlation_within_rules_does_not_see_their_means():
    """Predictions that tell rules apart and nothing else have none; shifting a rule as a whole changes nothing."""
    state = [episode([0, 1, 2, 3, 4, 5])]
    assert np.isnan(saving_report(state, RULE_OF, MEANS, MEANS)["within_rule"])
    shifted = SAVES + np.array([10, 10, 10, -7, -7, 0])
    assert saving_report(state, RULE_OF, shifted, MEANS)["within_rule"] == pytest.approx(1)
    against = np.array([-1.0, 0, 1, 0, 1, 0])
    expected = np.corrcoef(np.array([3, 0, -3, 1, -1]), np.array([-1, 0, 1, -0.5, 0.5]))[0, 1]
    assert saving_report(state, RULE_OF, against, MEANS)["within_rule"] == pytest.approx(expected)


def test_ranks_are_compared_state_by_state():
    predicted = np.array([1.0, 3, 0, 2, 2, 5])
    tokens = ([0, 1, 2, 3], [4, 3, 5], [2, 5])
    wanted = np.mean([spearmanr(SAVES[each], predicted[each]).statistic for each in tokens])
    assert saving_report(EPISODES, RULE_OF, predicted, MEANS)["spearman"] == pytest.approx(wanted)


def test_regret_is_the_share_of_the_best_that_is_missed():
    """Token 1 is thought best, then 3, 0, 2: of 4 units, 1, then 3, then all are had; in the second state all."""
    predicted = np.array([1.0, 3, 0, 2, 0, 0])
    report = saving_report(EPISODES, RULE_OF, predicted, MEANS, top=(1, 2, 3))
    assert report["regret_1"] == pytest.approx((3 / 4 + 0) / 2)
    assert report["regret_2"] == pytest.approx((1 / 4 + 0) / 2)
    assert report["regret_3"] == 0


def test_regret_of_a_loss_is_that_of_doing_nothing():
    assert saving_report([episode([0, 2])], RULE_OF, -SAVES, MEANS)["regret_1"] == 1


def test_random_regret_in_closed_form():
    """Of two classes that save 4 and 1, chance misses 3/8 on average; 32 orders of 40 states tell that to 0.03."""
    states = [episode([0, 1])] * 40
    report = saving_report(states, RULE_OF, SAVES, MEANS, seed=1)
    assert report["regret_1_random"] == pytest.approx(3 / 8, abs=0.05)
    assert report["regret_4_random"] == 0


def test_means_of_rules(token_rollouts: TokenRollouts):
    """Over matches, in units; a rule that was never met is given the mean over rules."""
    means = rule_means(token_rollouts, token_rollouts.episodes[:4])
    known = labels(token_rollouts.episodes[:4])
    rule = token_rollouts.rule_of[known.token[0]]
    mine = np.array([token_rollouts.rule_of[token] == rule for token in known.token])
    assert means[rule] == pytest.approx(np.average(known.saving[mine], weights=known.count[mine]))
    assert by_rule([rule, "never"], means).tolist() == pytest.approx([means[rule], np.mean(list(means.values()))])


def test_a_model_is_measured_on_real_episodes(token_model: MatchLevelModel, token_rollouts: TokenRollouts):
    predicted = savings(token_model.read(token_rollouts))
    means = by_rule(token_rollouts.rule_of, rule_means(token_rollouts, token_rollouts.episodes))
    report = saving_report(token_rollouts.episodes, token_rollouts.rule_of, predicted, means)
    assert np.isfinite(list(report.values())).all()
    assert min(report[f"{name}_cases"] for name in ("r2", "within_rule", "spearman", "regret")) > 10
    assert report["regret_16"] <= report["regret_4"] <= report["regret_1"]


def test_agreement_over_some_labels_is_that_of_an_episode_with_no_others():
    """And NaN where there are none, as when every token was trained on."""
    predicted = SAVES + np.array([0.0, 1.0, -1.0, 0.5, 0.0, 2.0])
    known = labels([episode([0, 1, 2, 3, 4])])
    alone = saving_report([episode([1, 3, 4])], RULE_OF, predicted, MEANS)
    chosen = agreement(known.rows(np.array([1, 3, 4])), RULE_OF, predicted, MEANS)
    assert chosen == {name: alone[name] for name in chosen}
    assert chosen["r2"] != agreement(known, RULE_OF, predicted, MEANS)["r2"]
    none = agreement(known.rows(np.array([], int)), RULE_OF, predicted, MEANS)
    assert (none["r2_cases"], none["within_rule_cases"]) == (0, 0)
    assert np.isnan([none["r2"], none["r2_rule_mean"], none["within_rule"]]).all()


def test_no_match_at_all_is_refused():
    with pytest.raises(InputError, match="no match"):
        saving_report([], RULE_OF, SAVES, MEANS)
