"""What is bounded is proved from the graph, and matches that rest on a proof follow the graph's changes."""

import tracemalloc

import numpy as np
import pytest
from support.rewrites import applied, graph_of, read
from support.strategies import weight
from support.walks import identity

from rlflow.ir import Node, Ref
from rlflow.rules.library import Library
from rlflow.rules.matching import bounds
from rlflow.rules.matching.bounds import SIGHT, is_bounded
from rlflow.rules.matching.rewriter import Rewriter


def stored(nodes: list[Node], *values: float) -> Ref:
    nodes.append(weight(np.array(values, np.float32), f"w{len(nodes)}"))
    return Ref(len(nodes) - 1)


def matrix(nodes: list[Node], rows: int, columns: int, scale: float) -> Ref:
    rng = np.random.default_rng(0)
    nodes.append(weight((scale * rng.standard_normal((rows, columns))).astype(np.float32), f"w{len(nodes)}"))
    return Ref(len(nodes) - 1)


def normed(nodes: list[Node], gain: float = 1.0) -> Ref:
    x = read(nodes, "x", 3, 4)
    return applied(nodes, "LayerNormalization", x, stored(nodes, *[gain] * 4), stored(nodes, *[0.5] * 4))


def projected(nodes: list[Node], scale: float = 0.1, layers: int = 1) -> Ref:
    value = normed(nodes)
    for _ in range(layers):
        value = applied(nodes, "MatMul", value, matrix(nodes, 4, 4, scale))
    return value


BOUNDED = {
    "clip": lambda nodes: applied(nodes, "Clip", read(nodes, "x", 3), min=-6.0, max=6.0),
    "tanh": lambda nodes: applied(nodes, "Tanh", read(nodes, "x", 3)),
    "softmax": lambda nodes: applied(nodes, "Softmax", read(nodes, "x", 3, 4), axis=-1),
    "layer norm": normed,
    "projected": projected,
    "stored": lambda nodes: stored(nodes, 0.0, -1e4),
    "sum": lambda nodes: applied(
        nodes, "Add", applied(nodes, "Tanh", read(nodes, "x", 3)), stored(nodes, 1.0, 2.0, 3.0)
    ),
}
UNBOUNDED = {
    "input": lambda nodes: read(nodes, "x", 3),
    "stored mask": lambda nodes: stored(nodes, 0.0, -1e9),
    "stored infinity": lambda nodes: stored(nodes, 0.0, -np.inf),
    "stored NaN": lambda nodes: stored(nodes, 0.0, np.nan),
    "large gain": lambda nodes: normed(nodes, 1e5),
    "large weight": lambda nodes: projected(nodes, 1e5),
    "made mask": lambda nodes: applied(nodes, "Mul", read(nodes, "x", 3), stored(nodes, -1e9)),
    "sum with an input": lambda nodes: applied(nodes, "Add", normed(nodes), read(nodes, "m", 3, 4)),
    "exponential": lambda nodes: applied(nodes, "Exp", applied(nodes, "Tanh", read(nodes, "x", 3))),
    "too far": lambda nodes: projected(nodes, 0.1, layers=SIGHT),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_what_is_bounded_is_proved(name: str) -> None:
    graph = graph_of(lambda nodes: [BOUNDED[name](nodes)])
    assert is_bounded(graph, graph.outputs[0])


@pytest.mark.parametrize("name", UNBOUNDED)
def test_what_may_be_a_mask_is_not(name: str) -> None:
    graph = graph_of(lambda nodes: [UNBOUNDED[name](nodes)])
    assert not is_bounded(graph, graph.outputs[0])


def shifted_scores(nodes: list[Node]) -> list[Ref]:
    """A key's bias in scores: MatMul(q, bias) along whole rows, of a q that comes from a normalisation."""
    shift = applied(nodes, "MatMul", projected(nodes, layers=3), matrix(nodes, 4, 1, 0.1))
    return [applied(nodes, "Softmax", applied(nodes, "Add", read(nodes, "scores", 3, 5), shift), axis=-1)]


def test_matches_follow_a_proof_that_goes_and_comes(library: Library) -> None:
    """The normalisation is six nodes below the match; in pieces, nothing is known of it any more."""
    rules = library.select(["drop-softmax-shift", "unfuse-layer-norm", "fuse-layer-norm"]).rules
    rewriter, graph = Rewriter(rules), graph_of(shifted_scores)
    assert rewriter.matches(graph).counts[:2] == (1, 1)
    apart = rewriter.apply(graph, rewriter.matches(graph)[1][0])
    assert rewriter.matches(apart).counts[0] == 0
    for after in (apart, graph):
        fresh = [[identity(m) for m in found] for found in Rewriter(rules).matches(after)]
        assert [[identity(m) for m in found] for found in rewriter.matches(after)] == fresh


@pytest.mark.parametrize("shape", [(), (0,), (7,), (0, 4), (4, 0), (30, 7), (2, 9, 5)])
@pytest.mark.parametrize("rows_at_once", [1, 1000])
def test_a_few_rows_at_a_time_are_as_good_as_all(monkeypatch: pytest.MonkeyPatch, shape, rows_at_once: int):
    """NaN bounds nothing. Not vacuous: one element at once is one row at once."""
    monkeypatch.setattr(bounds, "_READ_AT_ONCE", rows_at_once)
    values = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    sums = np.abs(values.astype(np.float64)).sum(axis=-2) if values.ndim > 1 else np.array(np.inf)
    magnitude = bounds._read(values)
    assert magnitude.largest == np.abs(values).max(initial=0.0)
    assert magnitude.column_sum == pytest.approx(sums.max(initial=0.0))
    if values.size:
        assert bounds._read(np.where(values == values.flat[0], np.nan, values)) == (np.inf, np.inf)


def test_a_large_weight_takes_no_memory():
    """A weight of a model of 70 billion numbers, of which all but one element is a view."""
    values = np.broadcast_to(np.float32(1e-3), (8192, 4096))
    tracemalloc.start()
    magnitude = bounds._read(values)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert magnitude.column_sum == pytest.approx(8.192)
    assert peak < 4 * values.size / 2
