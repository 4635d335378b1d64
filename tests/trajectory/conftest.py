"""A recorded episode of random rewrites on a small BERT."""

import random

import pytest

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.optimiser import Budget, Workspace
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.record import Trajectory

SMALL_BERT = {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "vocabulary": 50}


@pytest.fixture(scope="session")
def shipped() -> Library:
    return rule_library.load()


@pytest.fixture(scope="session")
def bert() -> Graph:
    return from_onnx(zoo.build("bert", **SMALL_BERT, positions=16))


def record(graph: Graph, rewriter: Rewriter, library_hash: str, length: int, seed: int) -> Trajectory:
    work = Workspace.begin(graph, rewriter, AnalyticCost(), library_hash, Budget(expansions=1))
    rng, state = random.Random(seed), work.start
    for _ in range(length):
        state = work.step(state, rng.choice(work.actions(state)))
    return work.result(state).trajectory


@pytest.fixture(scope="session")
def episode(bert: Graph, shipped: Library) -> Trajectory:
    return record(bert, Rewriter(shipped.rules), shipped.hash, 12, seed=0)
