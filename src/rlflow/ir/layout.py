"""A graph as arrays along its order, for readers of whole graphs: the structural hash and an agent's observations.

A node's entries are computed once. A graph that came out of an edit rearranges its parent's arrays and computes entries
only for the nodes that the edit concerned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rlflow.ir.constant_hash import constant_hash
from rlflow.ir.depth_first import Pieces, spliced
from rlflow.ir.node import Node, Ref


@dataclass(frozen=True, eq=False, slots=True)
class Layout:
    """The N running nodes of a graph, in its order, and the E values that they read at run time.

    - `contents`, (N,) int64: a hash of everything about a node except which nodes it reads at run time.
    - `counts`, (N,) int32: the number of different nodes that it reads at run time.
    - `operands`, (E,) int32: their ids, reader after reader, each once a reader and in the reader's order.
    """

    contents: np.ndarray
    counts: np.ndarray
    operands: np.ndarray


def layout(nodes: Mapping[int, Node], order: Sequence[int]) -> Layout:
    """Compute the layout of a graph from nothing."""
    nothing = Layout(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))
    return updated(nothing, nodes, [list(order)])


def updated(before: Layout, nodes: Mapping[int, Node], pieces: Pieces) -> Layout:
    """Return the layout of an order that consists of these pieces of the order before."""
    made = [i for piece in pieces if isinstance(piece, list) for i in piece]
    read = {i: [source for source in nodes[i].sources if not nodes[source].constant] for i in made}
    content = {i: _content(nodes[i], read[i], nodes) for i in made}

    # A piece of nodes is a piece of edges, too: from the first edge of its first reader on.
    ends = np.concatenate(([0], np.cumsum(before.counts)))
    edges = [range(ends[p.start], ends[p.stop]) if isinstance(p, range) else p for p in pieces]

    return Layout(
        spliced(pieces, before.contents, lambda piece: [content[i] for i in piece]),
        spliced(pieces, before.counts, lambda piece: [len(read[i]) for i in piece]),
        spliced(edges, before.operands, lambda piece: [source for i in piece for source in read[i]]),
    )


def _content(node: Node, read: Sequence[int], nodes: Mapping[int, Node]) -> int:
    """Hash a node: an operand read at run time counts by its place among these, a constant one by what it computes."""

    def code(ref: Ref | None) -> int:
        if ref is None:
            return 0
        if ref.node in read:
            return hash((read.index(ref.node), ref.index))
        return constant_hash(nodes, ref)

    return hash((node.signature, *map(code, node.inputs)))
