"""The parts that all searches share: the rules that they rewrite with and the prices that they go by."""

from __future__ import annotations

from dataclasses import dataclass

from rlflow.cost.base import CostModel
from rlflow.ir.graph import Graph
from rlflow.optimiser import Budget, Workspace
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter


@dataclass(frozen=True)
class Search:
    """The same library, rewriter and cost model serve every method, so that their results compare."""

    library: Library
    rewriter: Rewriter
    cost_model: CostModel

    def begin(self, graph: Graph, budget: Budget) -> Workspace:
        return Workspace.begin(graph, self.rewriter, self.cost_model, self.library.hash, budget)
