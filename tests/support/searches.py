"""A rewriter that counts what a search asks of it."""

from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.graph import Graph
from rlflow.optimiser import Budget
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.backtracking import Backtracking
from rlflow.search.greedy import Greedy
from rlflow.search.random import RandomSearch


class CountingRewriter(Rewriter):
    """A rewriter that knows how many rewrites it carried out."""

    applied = 0

    def apply(self, graph: Graph, match: Match) -> Graph:
        self.applied += 1
        return super().apply(graph, match)


METHODS = {"greedy": Greedy, "backtracking": Backtracking, "random": RandomSearch}
SEARCHING = Budget(expansions=30)


def make(method, library, cost_model=None, **settings):
    return METHODS[method](library, CountingRewriter(library.rules), cost_model or AnalyticCost(), **settings)
