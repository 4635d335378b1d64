"""Equality saturation is a search like the others, and finds what they do not."""

from dataclasses import replace

import numpy as np
import pytest
from support.rewrites import assert_same_outputs
from support.token_worlds import small_graph
from support.walks import LIBRARY, REWRITER, SHARING

from rlflow import zoo
from rlflow.agents.match_level.lessons import Start, started
from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.base import Cost
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.method import Budget, Ledger, OptimisationResult, Workspace
from rlflow.onnx_io import from_onnx
from rlflow.rules.matching.sharing import rewriter_of
from rlflow.search.base import Search
from rlflow.search.equality_saturation import equality_saturation, tensat
from rlflow.search.greedy import Greedy
from rlflow.search.seeding import seeded
from rlflow.trajectory.replay import replay

SETTINGS = {"rounds": 1, "exploration": {"max_nodes": 600}}
WITHOUT_LIMIT = Budget()


@pytest.fixture(scope="module")
def decoder() -> Graph:
    """A decoder that reads its last token: what the other tokens alone need has to be pushed out step by step."""
    sizes = {"layers": 1, "hidden": 256, "heads": 4, "intermediate": 512, "vocabulary": 50}
    return from_onnx(zoo.build("t5_decoder", **sizes, head="last"))


@pytest.fixture(scope="module")
def found(decoder) -> OptimisationResult:
    return _method().optimise(decoder, WITHOUT_LIMIT)


@pytest.mark.slow
def test_what_is_called_off_ends_wherever_it_is(decoder):
    """In the exploration of the first e-graph, which nothing else would limit so early."""
    asked = []
    budget = Budget(is_called_off=lambda: asked.append(None) or len(asked) > 300)
    result = equality_saturation(LIBRARY, REWRITER, AnalyticCost(), before=None).optimise(decoder, budget)
    assert 300 < len(asked) < 400
    assert result.best_ms == result.start_ms


def test_greedy_steps_that_sharing_matching_refuses_are_left_out():
    """Nodes that a refused step would have made leave a gap in the numbers, which a replay closes.

    Not vacuous: the graph that greedy search's other steps lead to has other numbers than its replay.
    """
    graph = started(small_graph("bert"), Start(walked=10, seed=9), LIBRARY)
    greedy = Greedy(LIBRARY, REWRITER, AnalyticCost())
    work = Workspace.begin(graph, SHARING, AnalyticCost(), LIBRARY.hash, Ledger(WITHOUT_LIMIT))
    begun = seeded(work, greedy, work.ledger)
    *_, replayed = replay(graph, work.trajectory(work.start, begun), SHARING)
    assert set(replayed.nodes) != set(begun.graph.nodes)

    assert _method().optimise(graph, WITHOUT_LIMIT).best_ms <= begun.runtime_ms


def _method(cost_model=None, **settings):
    method = equality_saturation(LIBRARY, SHARING, cost_model or AnalyticCost(), before=None, **SETTINGS | settings)
    return replace(method, seed=Greedy(LIBRARY, REWRITER, method.cost_model))


def _greedy(graph):
    return Greedy(LIBRARY, REWRITER, AnalyticCost()).optimise(graph, WITHOUT_LIMIT)


def test_it_finds_what_greedy_search_does_not(decoder, found):
    """Steps that cost nothing have to come before those that pay, so that greedy search hardly finds any."""
    greedy = _greedy(decoder)
    assert found.improvement_percent > greedy.improvement_percent + 3.0


def test_its_result_is_a_trajectory_like_any_other(decoder, found):
    """It replays from the original to the best graph, which computes the same."""
    *_, last = replay(decoder, found.trajectory, rewriter_of(found.trajectory.matching, LIBRARY.rules))
    assert AnalyticCost().runtime_ms(last) == found.best_ms
    assert_same_outputs(decoder, last, np.random.default_rng(0))


def test_it_says_how_close_it_came(found):
    assert found.optimality is not None
    assert found.optimality.proven
    assert found.optimality.bound_ms <= found.best_ms * (1 + 1e-9)
    assert 0.0 <= found.optimality.gap_percent < 1.0
    assert found.optimality.limited_by in ("", "nodes")


class _GivingUp(Search):
    """A search that goes back to the original."""

    def improve(self, work, state, on_progress=None):
        return work.start


def test_proven_is_said_of_what_is_reported(tiny):
    """Not vacuous: the extraction is proven in both cases, as the first shows, but the second throws its graph away."""
    kept = replace(_method(), seed=None)
    lost = replace(kept, after=_GivingUp(LIBRARY, SHARING, AnalyticCost()))
    found, dearer = (method.optimise(tiny("tiny_merge"), WITHOUT_LIMIT) for method in (kept, lost))
    assert found.optimality.proven
    assert found.best_ms < dearer.best_ms == dearer.start_ms
    assert not dearer.optimality.proven
    gap_percent = 100 * (1 - dearer.optimality.bound_ms / dearer.best_ms)
    assert dearer.optimality.gap_percent == pytest.approx(gap_percent)
    assert gap_percent > 1.0


def test_the_seed_spends_expansions_of_the_whole(decoder):
    """Greedy search would go on (checked), but gets what is left of the budget."""
    method, budget = _method(), Budget(expansions=5)
    assert len(_greedy(decoder).trajectory.steps) > 5
    work = method.begin(decoder, budget)
    work.ledger.tally.expansions = 3
    method.improve(work, work.start)
    assert work.ledger.expansions == 5
    assert work.optimality is None, "nothing is left for an e-graph"


def test_the_effort_of_the_seed_counts_once(decoder):
    """Where the seed spends the budget, its steps are taken again all the same, but are no effort of their own."""
    found = _method().optimise(decoder, Budget(expansions=5))
    greedy = Greedy(LIBRARY, REWRITER, AnalyticCost()).optimise(decoder, Budget(expansions=5))
    assert len(found.trajectory.steps) == len(greedy.trajectory.steps) > 5, "alike places are no expansions"
    assert found.effort.rewrites == greedy.effort.rewrites
    assert (found.expansions, found.best_ms) == (5, greedy.best_ms)
    assert [m.rewrites for m in found.milestones] == [m.rewrites for m in greedy.milestones]


class _AtLeast(AnalyticCost):
    """A machine on which every inference takes a second more, so that prices of nodes do not add up."""

    def runtime_ms(self, graph):
        return 1000.0 + super().runtime_ms(graph)


def test_a_cost_model_that_says_otherwise_is_no_sum(tiny):
    found = _method(_AtLeast()).optimise(tiny("tiny_merge"), WITHOUT_LIMIT)
    assert found.best_ms < found.start_ms
    assert (found.optimality.proven, found.optimality.bound_ms) == (False, 0.0)


def test_the_effort_counts_uses_in_the_e_graph(found):
    """Not vacuous: far more uses than steps, and milestones fall from the start to the best."""
    assert found.effort.rewrites > 2 * len(found.trajectory.steps)
    prices_ms = [reached.runtime_ms for reached in found.milestones]
    assert prices_ms == sorted(prices_ms, reverse=True)
    assert (prices_ms[0], prices_ms[-1]) == (found.start_ms, found.best_ms)
    counts = [reached.rewrites for reached in found.milestones]
    assert counts == sorted(counts)


def test_it_repeats(decoder, found):
    again = _method().optimise(decoder, WITHOUT_LIMIT)
    assert again.trajectory == found.trajectory
    assert again.optimality == found.optimality
    assert again.effort.rewrites == found.effort.rewrites


@pytest.mark.parametrize("name", ["tiny_merge", "tiny_chain", "tiny_scale", "tiny_transpose"])
@pytest.mark.parametrize("extraction", ["ilp", "greedy"])
def test_it_is_never_dearer_than_greedy_search(tiny, name, extraction):
    graph = tiny(name)
    found, greedy = _method(extraction=extraction).optimise(graph, WITHOUT_LIMIT), _greedy(graph)
    assert found.best_ms <= greedy.best_ms * (1 + 1e-9)
    assert_same_outputs(graph, found.best, np.random.default_rng(0))


def test_without_time_there_is_no_e_graph(decoder):
    """The seeding search gets its part of the time, and nothing is left after it."""
    found = _method().optimise(decoder, Budget(time_s=1e-3))
    assert found.optimality is None
    assert found.best_ms <= found.start_ms


class _Threefold:
    """A cost model that is three times the analytic one, and does not say that it adds up over nodes."""

    name = "threefold"

    def __init__(self) -> None:
        self._analytic = AnalyticCost()

    def runtime_ms(self, graph: Graph) -> float:
        return 3.0 * self._analytic.runtime_ms(graph)

    def cost(self, graph: Graph) -> Cost:
        return replace(self._analytic.cost(graph), runtime_ms=self.runtime_ms(graph))


def test_other_prices_are_asked_of_whole_graphs(tiny):
    """The e-graph goes by analytic prices in proportion, several graphs are priced, and nothing is proven of them."""
    graph = tiny("tiny_merge")
    found = _method(_Threefold(), solutions=3).optimise(graph, WITHOUT_LIMIT)
    analytic = _method().optimise(graph, WITHOUT_LIMIT)
    assert found.best_ms == pytest.approx(3 * analytic.best_ms)
    assert found.optimality is not None
    assert (found.optimality.proven, found.optimality.bound_ms) == (False, 0.0)


def test_a_later_round_has_all_rules(tiny):
    """The second round ends the search where nothing is gained."""
    graph, messages = tiny("tiny_chain"), list[str]()
    found = _method(rounds=5).optimise(graph, WITHOUT_LIMIT, lambda fraction, text: messages.append(text))
    assert 2 <= len(messages) < 5
    assert found.best_ms <= found.start_ms


def test_tensat_goes_without_seed_and_without_a_search_after_it(tiny):
    method = tensat(LIBRARY, SHARING, AnalyticCost(), exploration={"slack_us": None, "max_nodes": 300})
    assert (method.name, method.seed, method.after, method.rounds) == ("tensat", None, None, 1)
    found = method.optimise(tiny("tiny_merge"), WITHOUT_LIMIT)
    assert found.best_ms < found.start_ms


def test_chains_may_go_on_from_what_it_found(tiny):
    method = _method(after="chains")
    assert type(method.after).__name__ == "Chains"
    assert method.optimise(tiny("tiny_merge"), WITHOUT_LIMIT).best_ms <= _greedy(tiny("tiny_merge")).best_ms


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"extraction": "oracle"}, "no extraction 'oracle'"),
        ({"rounds": 0}, "at least one round"),
        ({"solutions": 0}, "at least one round, one attempt and one solution"),
        ({"after": "random"}, "before and after it, not 'random'"),
        ({"foo": 1}, "no setting 'foo': choose among .*rounds"),
        ({"seed": None}, "no setting 'seed'"),
        ({"exploration": {"max_nodes": "many"}}, "max_nodes of equality saturation cannot be 'many'"),
        ({"rounds": 2.5}, "rounds of equality saturation cannot be 2.5"),
        ({"exploration": {"max_nodes": 0}}, "max_nodes of at least 1, not 0"),
        ({"limits": {"nodes": -1}}, "nodes is -1"),
        ({"exploration": {"nodes": 5}}, "no setting 'nodes'"),
        ({"limits": {"seconds": 5}}, "no setting 'seconds'"),
    ],
)
def test_settings_that_there_are_not_are_refused(settings, reason):
    with pytest.raises(InputError, match=reason):
        _method(**settings)


@pytest.mark.slow
def test_what_another_search_found_is_the_seed(decoder, found):
    """The e-graph begins with the original, so that the other search's choices bind it to nothing."""
    method = _method()
    work = method.begin(decoder, WITHOUT_LIMIT)
    greedy = Greedy(LIBRARY, SHARING, AnalyticCost()).improve(work, work.start)
    assert found.best_ms < greedy.runtime_ms
    state = replace(method, seed=None).improve(work, greedy)
    assert state.runtime_ms == pytest.approx(found.best_ms)
    assert state.path()[0] is work.start


def test_a_workspace_that_does_not_share_is_refused(tiny):
    work = Greedy(LIBRARY, REWRITER, AnalyticCost()).begin(tiny("tiny_merge"), WITHOUT_LIMIT)
    with pytest.raises(InputError, match="goes on in a workspace of sharing matching"):
        _method().improve(work, work.start)


def test_without_a_search_before_it_what_costs_nothing_is_realised(tiny):
    """The transposed transposition of an input is that input, for which nothing is chosen: the proven best is reached.

    Not vacuous: the proven best costs less than half of the start.
    """
    found = tensat(LIBRARY, SHARING, AnalyticCost()).optimise(tiny("tiny_transpose"), WITHOUT_LIMIT)
    assert found.optimality is not None
    assert found.optimality.proven
    assert found.optimality.gap_percent == pytest.approx(0.0, abs=1e-6)
    assert found.best_ms < 0.5 * found.start_ms


@pytest.mark.slow
@pytest.mark.parametrize("left", [1, 40, 100])
def test_rewrites_are_kept_to(decoder, left: int):
    """Uses of rules and rewrites that make the graph again are counted; without the limit there would be more.

    The expansion in which they run out goes on to its end (`Budget`): at most all matches of a graph.
    """
    greedy, unlimited = _greedy(decoder), _method().optimise(decoder, WITHOUT_LIMIT)
    most = greedy.effort.rewrites + left
    assert unlimited.effort.rewrites > most
    found = _method().optimise(decoder, Budget(rewrites=most))
    assert found.effort.rewrites <= most + sum(SHARING.matches(decoder).counts)
    assert found.best_ms <= greedy.best_ms
