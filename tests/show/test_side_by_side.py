"""Two graphs in rows: in closed form on a few nodes, and what must hold after random rewriting."""

import numpy as np
import pytest
from support.square_graphs import graph_of, node, source, weight
from support.walks import REWRITER, walk

from rlflow import zoo
from rlflow.ir import Graph
from rlflow.onnx_io import from_onnx
from rlflow.show.side_by_side import Block, Stretch, side_by_side

BERT = {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "vocabulary": 50, "positions": 16}


def told(blocks: tuple[Block, ...] | None) -> list[tuple[str, str, int]]:
    assert blocks is not None
    return [(block.title, block.kind, block.row) for block in blocks]


def chain(*middle: str) -> Graph:
    """A product, what is named, and a product."""
    nodes = [source("x"), weight("w"), node("MatMul", 0, 1, name="m")]
    for place, op in enumerate(middle):
        nodes.append(node(op, len(nodes) - 1, name=f"{op}{place}"))
    nodes.append(node("MatMul", len(nodes) - 1, 1, name="last"))
    return graph_of(nodes, len(nodes) - 1)


def test_what_both_have_stands_at_the_same_height() -> None:
    """The second graph lacks one softmax, whose row stays empty there."""
    before, after = chain("Softmax", "Softmax"), chain("Softmax")
    laid = side_by_side(before, after)
    assert told(laid.before) == [
        ("x", "value", 0),
        ("MatMul", "operator", 1),
        ("Softmax", "operator", 2),
        ("Softmax", "removed", 3),
        ("MatMul", "removed", 4),
        ("y0", "value", 5),
    ]
    assert told(laid.after) == [
        ("x", "value", 0),
        ("MatMul", "operator", 1),
        ("Softmax", "operator", 2),
        ("MatMul", "added", 3),
        ("y0", "value", 5),
    ]
    assert laid.stretches == (Stretch((3, 4), (3,)),), "the product computes the same value from another one"


def test_one_graph_alone() -> None:
    laid = side_by_side(chain("Softmax"))
    assert told(laid.before) == [
        ("x", "value", 0),
        ("MatMul", "operator", 1),
        ("Softmax", "operator", 2),
        ("MatMul", "operator", 3),
        ("y0", "value", 4),
    ]
    assert (laid.after, laid.stretches) == (None, ())


def test_layers_that_change_places_stay_apart() -> None:
    """Both graphs take the softmax `a` of p and `b` of q, but one makes q of a, the other p of b. Laid on top of each
    other they would be a ring, which no rows could hold.
    """

    def graph(digest: str, *order: tuple[str, str]) -> Graph:
        nodes = [source("x"), weight(digest)]
        for product, softmax in order:
            nodes.append(node("MatMul", len(nodes) - 1 if len(nodes) > 2 else 0, 1, name=product))
            nodes.append(node("Softmax", len(nodes) - 1, name=softmax))
        return graph_of(nodes, len(nodes) - 1)

    laid = side_by_side(graph("w", ("p", "a"), ("q", "b")), graph("ww", ("q", "b"), ("p", "a")))
    assert laid.after is not None
    for blocks in (laid.before, laid.after):
        assert [block.kind for block in blocks].count("operator") == 2
        assert all(block.row > blocks[source].row for block in blocks for source in block.operands)


def test_prices_of_a_layer_are_those_of_its_operators() -> None:
    graph = graph_of([source("x"), weight("w"), node("MatMul", 0, 1, name="m"), node("Add", 2, 1, name="a")], 3)
    laid = side_by_side(graph, before_ms={2: 2.0, 3: 0.5})
    assert [(block.title, block.ms) for block in laid.before] == [("x", None), ("MatMul, Add", 2.5), ("y0", None)]
    assert [block.ms for block in side_by_side(graph).before] == [None, None, None]


@pytest.mark.parametrize("name", ["yolo_v5", "nasnet_a"])
def test_layers_in_a_ring_are_divided(name: str) -> None:
    """Regions of these networks read each other: a residual sum may be fused with what the branch beside it reads. Each
    is in as many blocks as rows need, every operator in one.
    """
    settings = {"yolo_v5": {"image": 64}, "nasnet_a": {"cells": 2, "image": 64, "width": 12}}
    graph = from_onnx(zoo.build(name, **settings[name]))
    blocks = side_by_side(graph).before
    assert all(block.row > blocks[source].row for block in blocks for source in block.operands)
    assert sorted(i for block in blocks for i in block.nodes) == sorted((*graph.inputs, *graph.order))


@pytest.mark.parametrize("seed", range(8))
def test_after_random_rewriting(seed: int) -> None:
    """Blocks stand below what they read; those that both have, and no others, are unmarked and at one height; every
    operator is in one block, and every marked block in one stretch.
    """
    before = from_onnx(zoo.build("bert", **BERT))
    after = walk(before, REWRITER, np.random.default_rng(seed), 6)
    laid = side_by_side(before, after)
    assert laid.after is not None
    for graph, blocks in ((before, laid.before), (after, laid.after)):
        assert all(block.row > blocks[source].row for block in blocks for source in block.operands)
        operators = [i for block in blocks for i in block.nodes if block.kind != "value"]
        assert sorted(operators) == sorted(graph.order)
    same = [sorted((b.title, b.row) for b in blocks if b.kind == "operator") for blocks in (laid.before, laid.after)]
    assert same[0] == same[1]
    assert same[0], "most of the graph is untouched, so that the comparison is of something"
    marked = [
        [i for i, block in enumerate(side) if block.kind in ("removed", "added")] for side in (laid.before, laid.after)
    ]
    assert marked == [sorted(i for stretch in laid.stretches for i in stretch[side]) for side in (0, 1)]
