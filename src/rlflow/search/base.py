"""The parts that all searches share: the rules that they rewrite with and the prices that they go by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rlflow.cost.base import CostModel
from rlflow.ir.graph import Graph
from rlflow.optimiser import Budget, State, Workspace
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Location, Rewriter


@dataclass(frozen=True)
class Search:
    """The same library, rewriter and cost model serve every method, so that their results compare."""

    library: Library
    rewriter: Rewriter
    cost_model: CostModel

    def begin(self, graph: Graph, budget: Budget) -> Workspace:
        return Workspace.begin(graph, self.rewriter, self.cost_model, self.library.hash, budget)


def children(work: Workspace, state: State) -> Iterator[State]:
    """Every graph that is one rewrite away, priced, until the time is over."""
    for rule, matches in enumerate(work.rewriter.matches(state.graph)):
        for location, match in enumerate(matches):
            if work.is_out_of_time:
                return
            yield work.reached(state, Location(rule, location), work.rewriter.apply(state.graph, match))
