"""A rewriter that counts what a search asks of it."""

from functools import partial

from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.graph import Graph
from rlflow.method import Budget
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.backtracking import Backtracking
from rlflow.search.best import best
from rlflow.search.chains import Chains
from rlflow.search.greedy import Greedy
from rlflow.search.iterated import Iterated
from rlflow.search.random import RandomSearch

PORTFOLIO = {name: {"share": 1.0} for name in ("greedy", "chains", "iterated")}
"""Members that rewrite with the rewriter that they are given."""


class CountingRewriter(Rewriter):
    """A rewriter that knows how many rewrites it carried out."""

    applied = 0

    def apply(self, graph: Graph, match: Match) -> Graph:
        self.applied += 1
        return super().apply(graph, match)


METHODS = {
    "greedy": Greedy,
    "backtracking": Backtracking,
    "chains": Chains,
    "iterated": Iterated,
    "random": RandomSearch,
    "best": partial(best, members=PORTFOLIO),
}
SEARCHING = Budget(expansions=30)


def make(method, library, cost_model=None, **settings):
    return METHODS[method](library, CountingRewriter(library.rules), cost_model or AnalyticCost(), **settings)
