"""A portfolio shares one budget, and is never worse than its parts were."""

import pytest
from support.searches import PORTFOLIO, make

from rlflow.cost.analytic import AnalyticConfig, AnalyticCost
from rlflow.errors import InputError
from rlflow.method import Budget
from rlflow.optimise.methods import METHODS
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import SharingRewriter
from rlflow.search.base import Search
from rlflow.search.best import MEMBERS, Best, Member
from rlflow.search.greedy import Greedy
from rlflow.trajectory.replay import replay


class Watching(Search):
    """Does nothing but remember the budget that it was given, and spend some of it."""

    def __init__(self, search, spends):
        super().__init__(search.library, search.rewriter, search.cost_model)
        object.__setattr__(self, "spends", spends)
        object.__setattr__(self, "given", [])

    def improve(self, work, state, on_progress=None):
        self.given.append(work.ledger.limits)
        work.ledger.tally.expansions += self.spends
        return state


def portfolio(search, *members):
    made = tuple(Member(Watching(search, spends), share) for spends, share in members)
    return Best(search.library, search.rewriter, search.cost_model, made)


def test_what_one_leaves_over_goes_to_the_others(shipped, tiny):
    """Shares of 2, 1 and 1: half of 100, then half of the 90 that are left after 10, then all of the rest."""
    best = portfolio(make("greedy", shipped), (10, 2.0), (30, 1.0), (5, 1.0))
    best.optimise(tiny("tiny_chain"), Budget(expansions=100))
    assert [member.search.given[0].expansions for member in best.members] == [50, 10 + 45, 100]


@pytest.mark.slow
def test_a_time_is_shared_too(shipped, tiny):
    best = portfolio(make("greedy", shipped), (0, 1.0), (0, 3.0))
    best.optimise(tiny("tiny_chain"), Budget(time_s=100.0))
    first, second = (member.search.given[0].time_s for member in best.members)
    assert first == pytest.approx(25.0, abs=1.0)
    assert second == pytest.approx(100.0)


def test_rewrites_are_shared_too(shipped, tiny):
    """Of which these members carry out none, so that the last may have all of them."""
    best = portfolio(make("greedy", shipped), (1, 1.0), (1, 3.0))
    best.optimise(tiny("tiny_chain"), Budget(rewrites=100))
    assert [member.search.given[0].rewrites for member in best.members] == [25, 100]


def test_without_a_budget_no_member_has_one(shipped, tiny):
    best = portfolio(make("greedy", shipped), (1, 1.0), (1, 1.0))
    best.optimise(tiny("tiny_chain"), Budget())
    assert [member.search.given for member in best.members] == [[Budget()], [Budget()]]


def test_a_spent_budget_ends_the_portfolio(shipped, tiny):
    best = portfolio(make("greedy", shipped), (7, 1.0), (1, 1.0))
    best.optimise(tiny("tiny_chain"), Budget(expansions=5))
    assert [len(member.search.given) for member in best.members] == [1, 0]


def test_the_portfolio_is_never_worse_than_a_part(detour):
    """Greedy search alone is stuck here, as the tests of chains show; what a later member gives up is not lost."""
    model = AnalyticCost(AnalyticConfig(gflops_per_s=100, gbytes_per_s=40, launch_us=2.0))
    members = {"greedy": {"share": 1.0}, "iterated": {"share": 1.0, "options": {"stall": 3}}, "chains": {"share": 1.0}}
    parts = [
        make(name, detour.library, model, **member.get("options", {})).optimise(detour.graph, Budget())
        for name, member in members.items()
    ]
    whole = make("best", detour.library, model, members=members).optimise(detour.graph, Budget())
    assert whole.best_ms <= min(part.best_ms for part in parts) < parts[0].best_ms
    prices = [milestone.runtime_ms for milestone in whole.milestones]
    assert prices == sorted(prices, reverse=True)


def test_the_effort_is_that_of_all(shipped, bert):
    """Greedy search's first, then that of going on from there."""
    budget = Budget(expansions=60)
    whole = make("best", shipped, members=PORTFOLIO).optimise(bert, budget)
    alone = make("greedy", shipped).optimise(bert, Budget())
    assert whole.effort.prices_asked > alone.effort.prices_asked
    assert whole.milestones[1].runtime_ms == alone.milestones[1].runtime_ms
    assert whole.best_ms <= alone.best_ms


def test_all_members_rewrite_as_equality_saturation_does(shipped, tiny):
    """Its rewriter finds more matches than the plain one, so that one trajectory leads through all members."""
    small = {"equality_saturation": {"share": 0.5, "options": {"exploration": {"max_nodes": 300}}}}
    best = make("best", shipped, members={**MEMBERS, **small})
    assert isinstance(best.rewriter, SharingRewriter)
    found = best.optimise(tiny("tiny_merge"), Budget(expansions=200))
    assert found.best_ms < found.start_ms
    *_, last = replay(tiny("tiny_merge"), found.trajectory, best.rewriter)
    assert AnalyticCost().runtime_ms(last) == found.best_ms


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, "needs at least one search"),
        ({"magic": {"share": 1.0}}, "no search 'magic': choose among .*chains"),
        ({"greedy": {"share": 0.0}}, "must be a positive number, not 0.0 of Greedy"),
        ({"greedy": {"share": "x"}}, "must be a positive number, not 'x' of Greedy"),
        ({"greedy": {}}, "search greedy of a portfolio needs a share"),
        ({"greedy": 1.0}, "search greedy of a portfolio needs a share and may have options, but says 1.0"),
        ({"greedy": {"share": 1.0, "option": {}}}, "may have options, but says .*'option'"),
        ({"chains": {"share": 1.0, "options": {"depth": 1}}}, "depth cannot be 1"),
        ({"chains": {"share": 1.0, "options": {"foo": 1}}}, "'foo'; its options are depth, width, whole_nodes, name"),
        ({"equality_saturation": {"share": 1.0, "options": {"foo": 1}}}, "no setting 'foo': choose among .*rounds"),
    ],
)
def test_impossible_portfolios_are_refused(shipped, members, message):
    with pytest.raises(InputError, match=message):
        make("best", shipped, members=members)


def test_a_portfolio_is_not_worse_than_greedy_search_if_its_members_have_no_time(shipped, tiny):
    """Half of the budget is enough for greedy search, and the rest for hardly more than a step of each member."""
    graph, method = tiny("tiny_merge"), METHODS.get("best")
    greedy = Greedy(shipped, Rewriter(shipped.rules), AnalyticCost()).optimise(graph, Budget())
    assert greedy.best_ms < greedy.start_ms, "the floor would be the ground"
    expansions = 2 * (len(greedy.trajectory.steps) + 1)
    found = method(shipped, Rewriter(shipped.rules), AnalyticCost()).optimise(graph, Budget(expansions=expansions))
    assert found.best_ms <= greedy.best_ms
