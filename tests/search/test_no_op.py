"""No search: what goes in comes out, however much could be done."""

from collections.abc import Callable

from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.graph import Graph
from rlflow.method import Budget
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy
from rlflow.search.no_op import Nothing


def test_nothing_is_done_where_something_could_be(tiny: Callable[[str], Graph], shipped: Library) -> None:
    parts = (shipped, Rewriter(shipped.rules), AnalyticCost())
    graph = tiny("tiny_chain")
    assert Greedy(*parts).optimise(graph, Budget()).trajectory.steps
    result = Nothing(*parts).optimise(graph, Budget())
    assert result.best is graph
    assert result.trajectory.steps == ()
    assert result.effort.rewrites == 0
