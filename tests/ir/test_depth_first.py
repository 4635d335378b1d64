"""An updated order is that of a walk from the roots, whatever the edit, and costs what the edit touches."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rlflow.ir.depth_first import CycleError, DepthFirst, depth_first, spliced, updated

Operands = dict[int, list[int]]


def whole_piece(order: DepthFirst, place: int) -> tuple[int, ...]:
    return order.nodes[order.begins[place] : place + 1]


def same(one: DepthFirst, other: DepthFirst) -> bool:
    return (one.roots, one.nodes) == (other.roots, other.nodes) and all(
        np.array_equal(a, b) for a, b in ((one.begins, other.begins), (one.places, other.places))
    )


def test_a_piece_ends_with_the_node_that_it_was_come_to_through() -> None:
    #   0 <- 1 <- 3,  0 <- 2 <- 3,  4 alone
    operands: Operands = {0: [], 1: [0], 2: [0], 3: [2, 1], 4: []}
    order = depth_first([3, 4], operands.__getitem__, 6)
    assert order.nodes == (0, 2, 1, 3, 4)
    assert [whole_piece(order, k) for k in range(5)] == [(0,), (0, 2), (1,), (0, 2, 1, 3), (4,)]
    assert order.places.tolist() == [0, 2, 1, 3, 4, -1]
    assert order.pieces == ()


def test_a_cycle_is_named() -> None:
    chain: Operands = {0: [], 1: [0], 2: [1], 3: [2]}
    order = depth_first([3], chain.__getitem__, 4)
    looped: Operands = chain | {1: [0, 2]}
    for walk in (
        lambda: depth_first([3], looped.__getitem__, 4),
        lambda: updated(order, [1], [], [3], looped.__getitem__, 4),
    ):
        with pytest.raises(CycleError) as caught:
            walk()
        assert caught.value.node in (1, 2)


@settings(max_examples=300)
@given(seed=st.integers(0, 2**32 - 1), num_nodes=st.integers(2, 40), num_roots=st.integers(1, 3))
def test_updated_is_walked_anew(seed: int, num_nodes: int, num_roots: int) -> None:
    """Eight edits in a row of a random graph: nodes with other operands, new ones among them, sometimes other roots."""
    rng = np.random.default_rng(seed)
    operands: Operands = {i: _some(rng, range(i)) for i in range(num_nodes)}
    roots = _some(rng, range(num_nodes)) or [num_nodes - 1]
    order = depth_first(roots[:num_roots], operands.__getitem__, num_nodes)
    for _ in range(8):
        edited = {i: list(operands[i]) for i in order.nodes}
        height = {i: place for place, i in enumerate(order.nodes)}
        for node in _some(rng, order.nodes):
            below = order.nodes[: height[node]]
            edited[node] = _some(rng, below)
            if rng.random() < 0.5:
                edited[num_nodes] = _some(rng, below)
                edited[node].insert(int(rng.integers(len(edited[node]) + 1)), num_nodes)
                num_nodes += 1
        if rng.random() < 0.2:
            roots = _some(rng, order.nodes) or roots
        anew = depth_first([r for r in roots if r in edited][:num_roots], edited.__getitem__, num_nodes)
        changed = [i for i in anew.nodes if operands.get(i) != edited[i]]
        removed = sorted(set(order.nodes) - set(anew.nodes))
        after = updated(order, changed, removed, anew.roots, edited.__getitem__, num_nodes)
        assert same(after, anew)
        assert _along(after, order) == after.nodes
        order, operands = after, edited


def _some(rng: np.random.Generator, of: Sequence[int]) -> list[int]:
    """At most three, each once."""
    return [int(i) for i in rng.permutation(np.array(of, int))[: rng.integers(4)]]


def _along(after: DepthFirst, before: DepthFirst) -> tuple[int, ...]:
    return tuple(spliced(after.pieces, np.array(before.nodes, int), lambda made: made).tolist())


def branching_chain(layers: int) -> Operands:
    """Each layer joins what two nodes make of the layer before; all layers read node 0."""
    operands: Operands = {0: []}
    for layer in range(layers):
        top = 3 * layer
        operands |= {top + 1: [top], top + 2: [top, 0], top + 3: [top + 1, top + 2]}
    return operands


@pytest.mark.parametrize("layers", [10, 1000])
def test_an_edit_costs_what_it_touches(layers: int) -> None:
    """Operands turned round, a node removed, one added and one read before its turn, in the middle: no more nodes are
    asked for their operands in a hundred times as deep a graph."""
    operands = branching_chain(layers)
    size, top = len(operands), 3 * (layers // 2)
    order = depth_first([size - 1], operands.__getitem__, size)
    edits: dict[str, tuple[Operands, list[int], list[int]]] = {
        "turned": ({top + 3: [top + 2, top + 1]}, [top + 3], []),
        "removed": ({top + 3: [top + 1, top]}, [top + 3], [top + 2]),
        "added": ({top + 3: [size, top + 1], size: [top + 2]}, [top + 3], []),
        "read earlier": ({top + 1: [top + 2]}, [top + 1], []),
    }
    for name, (edit, changed, removed) in edits.items():
        asked: list[int] = []
        edited = {i: o for i, o in (operands | edit).items() if i not in removed}

        def asking(node: int, edited: Operands = edited, asked: list[int] = asked) -> list[int]:
            asked.append(node)
            return edited[node]

        after = updated(order, changed, removed, [size - 1], asking, size + 1)
        assert same(after, depth_first([size - 1], edited.__getitem__, size + 1)), name
        assert 1 <= len(asked) <= 6, name
        assert after.nodes != order.nodes, name
