"""The identity of a graph as a hash of its structure.

Two graphs have the same hash if they have the same nodes on the same operands from the same weights, whatever the names
and numbers of the nodes, and by whatever edits they came about. Symbols of dynamic dimensions belong to the types, and
the text of a node that is carried verbatim belongs to the node.

The graph is written down in its order, which depends on the structure alone, and that text is digested.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np

from rlflow.ir.constant_hash import constant_hash
from rlflow.ir.graph import Graph
from rlflow.ir.node import Ref


def structural_hash(graph: Graph) -> str:
    """Return the hash as 16 hexadecimal digits.

    The cost is linear in the nodes that run, some ten nanoseconds each if the layout of the graph or of its parent is
    known.
    """
    places = graph.places()
    layout = graph.layout
    inputs = np.array([graph.nodes[i].signature for i in graph.inputs], np.int64)
    outputs = np.array([_written(graph, ref, places) for ref in graph.outputs], np.int64)
    digest = blake2b(digest_size=8)
    for part in (inputs, layout.contents, layout.counts, places[layout.operands], outputs):
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part.astype(part.dtype.newbyteorder("<"), copy=False).tobytes())
    return digest.hexdigest()


def _written(graph: Graph, output: Ref, places: np.ndarray) -> int:
    if graph.nodes[output.node].constant:
        return constant_hash(graph.nodes, output)
    return hash((int(places[output.node]), output.index))
