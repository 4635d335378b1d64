"""A graph as arrays along its order, for what looks at the whole of it after every edit: its hash, and the observations
of an agent.

What a node adds to them is worked out once: a graph that came out of an edit has its parent's arrays, but for the
pieces that the edit moved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rlflow.ir.constant_hash import constant_hash
from rlflow.ir.depth_first import Pieces, spliced
from rlflow.ir.node import Node


@dataclass(frozen=True, eq=False, slots=True)
class Layout:
    """N nodes in a graph's order. `contents` (N,) int64 hash all that a node is, but for which nodes it reads at run
    time: these are `operands` (E,) int32, the ids of nodes and inputs, each once a reader, in the reader's order;
    `counts` (N,) int32 tell how many of them a reader has.
    """

    contents: np.ndarray
    counts: np.ndarray
    operands: np.ndarray


def layout(nodes: Mapping[int, Node], order: Sequence[int]) -> Layout:
    """The layout of a graph of which nothing is known."""
    nothing = Layout(np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros(0, np.int32))
    return updated(nothing, nodes, [list(order)])


def updated(before: Layout, nodes: Mapping[int, Node], pieces: Pieces) -> Layout:
    """The layout of an order that is made of these pieces of the order before."""
    made = [i for piece in pieces if isinstance(piece, list) for i in piece]
    read = {i: [source for source in nodes[i].sources if not nodes[source].constant] for i in made}
    content = {i: _content(nodes[i], read[i], nodes) for i in made}
    ends = np.concatenate(([0], np.cumsum(before.counts)))
    edges = [range(ends[p.start], ends[p.stop]) if isinstance(p, range) else p for p in pieces]
    return Layout(
        spliced(pieces, before.contents, lambda piece: [content[i] for i in piece]),
        spliced(pieces, before.counts, lambda piece: [len(read[i]) for i in piece]),
        spliced(edges, before.operands, lambda piece: [source for i in piece for source in read[i]]),
    )


def _content(node: Node, read: Sequence[int], nodes: Mapping[int, Node]) -> int:
    """Operands that are read at run time count as what they are among these, constant ones as what they compute."""
    codes = (
        0 if ref is None else hash((read.index(ref.node), ref.index)) if ref.node in read else constant_hash(nodes, ref)
        for ref in node.inputs
    )
    return hash((node.signature, *codes))
