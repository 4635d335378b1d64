"""The orders of first steps: closed forms, and what each of them puts last."""

import numpy as np
import pytest

from rlflow.agents.match_level.guided_chains import ChainConfig
from rlflow.agents.match_level.preference import ORDERS, Preference
from rlflow.agents.match_level.scorers import EncoderScorer, Scores
from rlflow.cost.analytic import AnalyticCost
from rlflow.errors import InputError
from tests.support.detours import detour_process, detours, rules_astray
from tests.support.readers import reader_of
from tests.support.taught import untaught

PLACES = 3


@pytest.fixture
def scores() -> Scores:
    """Three matches: sure and worthless, doubtful and worth much at once, doubtful and worth half of that later."""
    rules, graph = rules_astray(), detours(PLACES)
    model = untaught(detour_process(1, rules))
    rewriter = detour_process(1, rules).evaluator.rewriter
    state = EncoderScorer(reader_of(model), graph, rewriter, AnalyticCost()).of(graph).state
    number = len(state.matches)
    taken, gain, saving = np.full(number, -9.0), np.zeros(number), np.zeros(number)
    taken[:3] = 4.0, -1.0, -1.0
    gain[1:3] = np.log1p([20.0, 10.0])
    saving[1:3] = 20.0, -5.0
    return Scores(state, taken, gain, saving)


@pytest.mark.parametrize(("order", "first"), [("confident", 0), ("far_sighted", 1), ("patient", 2)])
def test_each_order_puts_another_match_first(scores: Scores, order: str, first: int):
    assert len(scores.taken) >= 3
    preferred = Preference(order, np.zeros(len(rules_astray().rules))).first(scores)
    assert preferred.shape == scores.taken.shape
    assert int(preferred.argmax()) == first


@pytest.mark.parametrize(("order", "following"), [("confident", 0), ("far_sighted", 0), ("patient", 2)])
def test_patience_lasts_and_far_sight_is_for_first_steps(scores: Scores, order: str, following: int):
    preference = Preference(order, np.full(len(rules_astray().rules), np.nan))
    assert int(preference.following(scores).argmax()) == following


def test_patience_counts_what_comes_after_a_rewrite(scores: Scores):
    """The logarithm of probability times units beyond its own; nothing is worth a thousandth, and a loss no more."""
    probability, units = 1 / (1 + np.exp(-scores.taken)), np.expm1(scores.gain)
    later = units - np.where(scores.saving > 0, scores.saving, 0.0)
    assert later[1:3] == pytest.approx([0.0, 10.0])
    assert np.exp(ORDERS["patient"].first(scores)) == pytest.approx(probability * (later + 1e-3))


def test_all_matches_of_a_rule_share_their_noise(scores: Scores):
    noise = np.arange(len(rules_astray().rules), dtype=float)
    added = Preference("confident", noise).first(scores) - scores.taken
    assert added == pytest.approx([noise[location.rule] for location, _ in scores.state.matches])


@pytest.mark.parametrize("orders", [(), ("confident", "hopeful")])
def test_an_order_that_does_not_exist_is_refused(orders: tuple[str, ...]):
    with pytest.raises(InputError, match="choose among confident, far_sighted, patient"):
        ChainConfig(orders=orders)
