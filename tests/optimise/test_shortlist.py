"""The shortlist by prices that are written down, so that it is known which graph is the cheapest; none is measured."""

from collections.abc import Sequence

import pytest
from support.onnx_models import with_drawn_weights

from rlflow.cost.analytic import AnalyticCost
from rlflow.cost.fragment import describe
from rlflow.cost.measured import MeasuredCost, empty_price_list
from rlflow.cost.price_list import Price
from rlflow.cost.regions import node_by_node
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.method import Budget, OnProgress, OptimisationResult
from rlflow.onnx_io import from_onnx
from rlflow.optimise.clock import NO_DEADLINE, Deadline
from rlflow.optimise.reported.race import Measured
from rlflow.optimise.shortlist import Shortlist
from rlflow.rules import library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy
from rlflow.trajectory.replay import replay

CHAIN = """
    <ir_version: 8, opset_import: ["" : 17]>
    chain (float[64, 40] x) => (float[64, 8] y)
    <float[40, 32] a, float[32, 24] b, float[24, 16] c, float[16, 8] d> {
        p = MatMul(x, a)  q = MatMul(p, b)  r = MatMul(q, c)  y = MatMul(r, d)
    }
"""
"""Greedy search makes one product of four in three steps, of which each makes a product of another size."""
RULES = Library(tuple(rule for rule in library.load().rules if rule.family == "linear"))
REWRITER = Rewriter(RULES.rules)


@pytest.fixture(scope="module")
def start() -> Graph:
    return from_onnx(with_drawn_weights(CHAIN))


@pytest.fixture(scope="module")
def found(start: Graph) -> OptimisationResult:
    return Greedy(RULES, REWRITER, AnalyticCost()).optimise(start, Budget())


@pytest.fixture(scope="module")
def way(start: Graph, found: OptimisationResult) -> list[Graph]:
    graphs = list(replay(start, found.trajectory, REWRITER))
    assert len(graphs) == 4
    return graphs


def signatures(graph: Graph) -> list[str]:
    return [describe(graph, region).signature for region in node_by_node(graph).made if not is_free(graph, region[0])]


def is_free(graph: Graph, identifier: int) -> bool:
    return graph.nodes[identifier].constant or identifier in graph.inputs


def by_prices(way: list[Graph], prices_ms: dict[int, float], sigma_ms: float = 0.0) -> MeasuredCost:
    """The cost model by which the graphs after so many steps cost so much; it knows no others, and measures nothing.

    Each has one product that none before it has: that is given the rest of the price.
    """
    listed = empty_price_list(threads=1)
    for steps, ms in prices_ms.items():
        names = signatures(way[steps])
        known = [price.ms for name in names if (price := listed.get("as_written", name)) is not None]
        fresh = [name for name in names if listed.get("as_written", name) is None]
        for name in fresh:
            listed.add("as_written", name, Price((ms - sum(known)) / len(fresh), "a product", sigma_ms))
    return MeasuredCost("as_written", listed, pricing=None)


def chosen(
    way: list[Graph], found: OptimisationResult, cost: MeasuredCost, size: int = 4
) -> tuple[int, Measured | None]:
    """The number of steps that are left, after which the result's graph, hash and price are those on the way."""
    best, measured = Shortlist(cost, size).best(way[0], found, REWRITER, NO_DEADLINE)
    steps = len(best.trajectory.steps)
    assert best.trajectory.steps == found.trajectory.steps[:steps]
    assert best.best_ms == (best.trajectory.steps[-1].runtime_ms if steps else found.start_ms)
    assert signatures(best.best) == signatures(way[steps])
    return steps, measured


@pytest.mark.parametrize(
    ("prices_ms", "steps"),
    [
        ({0: 4.0, 1: 3.5, 2: 3.0, 3: 2.5}, 3),
        ({0: 4.0, 1: 3.5, 2: 3.0, 3: 3.2}, 2),
        ({0: 4.0, 1: 3.1, 2: 3.2, 3: 3.3}, 1),
        ({0: 4.0, 1: 4.5, 2: 5.0, 3: 5.5}, 0),
    ],
)
def test_the_cheapest_is_gone_on_with(
    way: list[Graph], found: OptimisationResult, prices_ms: dict[int, float], steps: int
) -> None:
    left, measured = chosen(way, found, by_prices(way, prices_ms))
    assert left == steps
    assert measured is not None
    assert (measured.before_ms, measured.after_ms) == pytest.approx((4.0, prices_ms[steps]))
    assert measured.graphs == 4


def test_a_difference_within_the_noise_is_none(way: list[Graph], found: OptimisationResult) -> None:
    """As large as in the test before, and the search is believed. Not vacuous: with less noise it is not."""
    prices_ms = {0: 4.0, 1: 3.5, 2: 3.0, 3: 3.2}
    assert chosen(way, found, by_prices(way, prices_ms, sigma_ms=0.2))[0] == 3
    assert chosen(way, found, by_prices(way, prices_ms, sigma_ms=0.01))[0] == 2


def test_a_short_list_passes_graphs_by(way: list[Graph], found: OptimisationResult) -> None:
    """Of the ends alone, the last is the cheaper one; of three, that after two steps is."""
    cost = by_prices(way, {0: 4.0, 1: 2.1, 2: 2.5, 3: 3.0})
    assert chosen(way, found, cost, size=2)[0] == 3
    assert chosen(way, found, cost, size=3)[0] == 2


def test_the_search_is_believed_where_an_end_is_not_known(way: list[Graph], found: OptimisationResult) -> None:
    assert chosen(way, found, by_prices(way, {0: 4.0, 1: 2.1})) == (3, None)
    assert chosen(way, found, by_prices(way, {})) == (3, None)


def test_what_is_not_known_between_the_ends_decides_nothing(way: list[Graph], found: OptimisationResult) -> None:
    left, measured = chosen(way, found, by_prices(way, {0: 4.0, 3: 3.0}))
    assert left == 3
    assert measured is not None
    assert measured.graphs == 2


class Asked(MeasuredCost):
    """Tells how often prices were to be measured."""

    times = 0

    def measure(
        self, graphs: Sequence[Graph], deadline: float | None = None, on_progress: OnProgress | None = None
    ) -> int:
        self.times += on_progress is not None
        return super().measure(graphs, deadline, on_progress)


@pytest.mark.parametrize(("price_s", "times"), [(1.0, 1), (100.0, 0)])
def test_what_would_take_too_long_is_not_begun(
    way: list[Graph], found: OptimisationResult, price_s: float, times: int
) -> None:
    """Of 60 s, for the few prices of both ends; none can be had here, which ends it."""
    cost = Asked("as_written", empty_price_list(threads=1), pricing=None)
    assert 1 < Shortlist(cost).foreseen_s(way[0], 1.0) < 30
    best, _ = Shortlist(cost).best(way[0], found, REWRITER, Deadline.after(60.0), lambda done, text: None, price_s)
    assert len(best.trajectory.steps) == 3
    assert cost.times == times


def test_a_list_without_both_ends_is_refused(way: list[Graph]) -> None:
    with pytest.raises(InputError, match="1 are too few"):
        Shortlist(by_prices(way, {}), size=1)
