"""The orders of first steps: closed forms, and what each of them puts last."""

import numpy as np
import pytest

from rlflow.agents.tokens.guided_chains import ChainConfig
from rlflow.agents.tokens.preference import ORDERS, Preference
from rlflow.agents.tokens.token_judge import Opinion, TokenJudge
from rlflow.cost.analytic import AnalyticCost
from rlflow.errors import InputError
from tests.support.detours import detour_process, detours, rules_astray
from tests.support.taught import untaught


@pytest.fixture
def opinion() -> Opinion:
    """Three matches: sure and worthless, doubtful and worth much, neither."""
    rules, graph = rules_astray(), detours(1)
    model = untaught(detour_process(1, rules))
    state = TokenJudge(model, graph, detour_process(1, rules).evaluator.rewriter, AnalyticCost()).of(graph).state
    number = len(state.matches)
    taken, gain = np.full(number, -9.0), np.zeros(number)
    taken[0], taken[1], gain[1] = 4.0, -1.0, 3.0
    return Opinion(state, taken, gain)


@pytest.mark.parametrize(("order", "first"), [("confident", 0), ("far_sighted", 1), ("expected", 1)])
def test_each_order_puts_another_match_first(opinion: Opinion, order: str, first: int):
    assert len(opinion.taken) >= 2
    preferred = Preference(order, np.zeros(len(rules_astray().rules))).of(opinion)
    assert preferred.shape == opinion.taken.shape
    assert int(preferred.argmax()) == first


def test_the_expected_gain_is_the_product(opinion: Opinion):
    """The logarithm of probability times units, the latter with the thousandth that nothing counts as."""
    probability, units = 1 / (1 + np.exp(-opinion.taken)), np.expm1(opinion.gain)
    assert np.exp(ORDERS["expected"](opinion)) == pytest.approx(probability * (units + 1e-3))


def test_all_matches_of_a_rule_share_their_noise(opinion: Opinion):
    noise = np.arange(len(rules_astray().rules), dtype=float)
    added = Preference("confident", noise).of(opinion) - opinion.taken
    assert added == pytest.approx([noise[location.rule] for location, _ in opinion.state.matches])


@pytest.mark.parametrize("orders", [(), ("confident", "hopeful")])
def test_an_order_that_does_not_exist_is_refused(orders: tuple[str, ...]):
    with pytest.raises(InputError, match="choose among confident, far_sighted, expected"):
        ChainConfig(orders=orders)
