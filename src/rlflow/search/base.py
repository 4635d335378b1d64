"""The parts that all searches share: the rules that they rewrite with, the prices that they go by, and how they follow
each other.

A search is one function, `improve`: it goes on from a state in a workspace. So one search goes on from what another has
found, under one budget, and the way from the original to the result stays one trajectory:

    work = greedy.begin(graph, Budget(time_s=60))
    found = chains.improve(work, greedy.improve(work, work.start))
    result = work.result(found)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from rlflow.cost.base import CostModel
from rlflow.ir.graph import Graph
from rlflow.method import Budget, Ledger, OnProgress, OptimisationResult, State, Workspace
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter


@dataclass(frozen=True)
class Search(ABC):
    """The same library, rewriter and cost model serve every method, so that their results compare."""

    library: Library
    rewriter: Rewriter
    cost_model: CostModel

    def begin(self, graph: Graph, budget: Budget) -> Workspace:
        return self.inside(graph, Ledger(budget))

    def inside(self, graph: Graph, ledger: Ledger) -> Workspace:
        """Begin on an account, which may be that of a search inside another one."""
        return Workspace.begin(graph, self.rewriter, self.cost_model, self.library.hash, ledger)

    @abstractmethod
    def improve(self, work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
        """Return the cheapest state met from this one on, at worst the state itself, within the workspace's budget."""

    def optimise(self, graph: Graph, budget: Budget, on_progress: OnProgress | None = None) -> OptimisationResult:
        work = self.begin(graph, budget)
        return work.result(self.improve(work, work.start, on_progress))
