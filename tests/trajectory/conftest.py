"""A recorded episode of random rewrites on a small BERT."""

import pytest
from support.episodes import SMALL_BERT, record

from rlflow import zoo
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.record import Trajectory


@pytest.fixture(scope="session")
def shipped() -> Library:
    return rule_library.load()


@pytest.fixture(scope="session")
def bert() -> Graph:
    return from_onnx(zoo.build("bert", **SMALL_BERT, positions=16))


@pytest.fixture(scope="session")
def episode(bert: Graph, shipped: Library) -> Trajectory:
    return record(bert, Rewriter(shipped.rules), shipped.hash, 12, seed=0)
