"""Small graphs whose work can be counted by hand, and the shipped rules."""

from collections.abc import Callable

import pytest
from support.cost_graphs import SMALL_BERT, K, M, N, graph, weight
from support.prices import DrawnTimings

from rlflow import zoo
from rlflow.cost import pricing
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library


@pytest.fixture(scope="session")
def bert() -> Callable[..., Graph]:
    """A small BERT, of two layers unless told otherwise."""
    return lambda **settings: from_onnx(zoo.build("bert", **{"layers": 2, **SMALL_BERT, **settings}))


@pytest.fixture(scope="session")
def shipped() -> Library:
    return rule_library.load()


@pytest.fixture
def linear() -> Graph:
    """relu(x w) + x w, with w = a b made of constants: the product is read twice."""
    return graph(
        [("MatMul", "a b", "w"), ("MatMul", "x w", "y"), ("Relu", "y", "r"), ("Add", "r y", "z")],
        {"x": (M, K)},
        {"z": (M, N)},
        {"a": weight(K, 2), "b": weight(2, N)},
    )


@pytest.fixture
def drawn_timings(monkeypatch: pytest.MonkeyPatch) -> DrawnTimings:
    """Timings that are drawn instead of taken, so that no test waits for the clock."""
    timings = DrawnTimings()
    for name in ("time_batch", "time_launch", "time_probe_ms"):
        monkeypatch.setattr(pricing, name, getattr(timings, name))
    return timings
