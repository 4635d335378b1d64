"""Recorded episodes of random rewrites."""

import random

from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.graph import Graph
from rlflow.method import Budget, Ledger, Workspace
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.record import Trajectory

SMALL_BERT = {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "vocabulary": 50}


def record(graph: Graph, rewriter: Rewriter, library_hash: str, length: int, seed: int) -> Trajectory:
    work = Workspace.begin(graph, rewriter, AnalyticCost(), library_hash, Ledger(Budget(expansions=1)))
    rng, state = random.Random(seed), work.start
    for _ in range(length):
        state = work.step(state, rng.choice(work.actions(state)))
    return work.result(state).trajectory
