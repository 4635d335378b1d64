"""A rewriter that counts what a search asks of it."""

from rlflow.ir.graph import Graph
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter


class CountingRewriter(Rewriter):
    """A rewriter that knows how many rewrites it carried out."""

    applied = 0

    def apply(self, graph: Graph, match: Match) -> Graph:
        self.applied += 1
        return super().apply(graph, match)
