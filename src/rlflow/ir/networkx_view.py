"""A graph as networkx sees it: to compare graphs node by node, and to lay one out for a picture.

The rest of RLFlow walks its own persistent graphs. Here, where a textbook algorithm is wanted and speed is not, a graph
is copied into a `networkx.MultiDiGraph`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import networkx as nx
from networkx.algorithms.isomorphism import categorical_multiedge_match, categorical_node_match

from rlflow.ir.graph import Graph


def to_networkx(graph: Graph) -> nx.MultiDiGraph:
    """Return the graph with edges from a value to its reader.

    Nodes have `op` and `signature`; edges have `operand` and `output`, the positions at either end. Graph inputs and
    outputs differ by their position: each output of the graph is a node of its own, `("output", position)`.
    """
    view = nx.MultiDiGraph()
    positions = {identifier: position for position, identifier in enumerate(graph.inputs)}
    for identifier, node in graph.nodes.items():
        view.add_node(identifier, op=node.op, signature=(node.signature, positions.get(identifier, -1)))
        for operand, ref in enumerate(node.inputs):
            if ref is not None:
                view.add_edge(ref.node, identifier, operand=operand, output=ref.index)

    for position, ref in enumerate(graph.outputs):
        view.add_node(("output", position), op="Output", signature=("output", position))
        view.add_edge(ref.node, ("output", position), operand=0, output=ref.index)
    return view


def isomorphism_classes(graphs: Iterable[Graph]) -> list[list[int]]:
    """Group graphs that differ in nothing but names and numbers of nodes.

    Each is named by its place, and a group comes where its first graph does. Stricter than equal structural hashes,
    which are about the expression: there a value that is computed twice equals one that is shared.
    """
    classes: list[list[int]] = []
    known: dict[tuple[int, ...], list[tuple[nx.MultiDiGraph, list[int]]]] = defaultdict(list)
    for place, graph in enumerate(graphs):
        view = to_networkx(graph)
        # Isomorphic graphs have the same nodes, so that only those with the same nodes need be compared.
        candidates = known[tuple(sorted(node.signature for node in graph.nodes.values()))]
        members = next((members for other, members in candidates if _isomorphic(view, other)), None)
        if members is None:
            members = []
            classes.append(members)
            candidates.append((view, members))
        members.append(place)
    return classes


def top_down_layout(operands: Sequence[Sequence[int]]) -> list[tuple[float, int]]:
    """Place the nodes of an acyclic graph in rows, each below all that it reads.

    `operands[i]` are the nodes that node i reads. Returns a column and a row for each: rows count from 0 at the top,
    columns are centred on 0 and one apart. In a row, nodes stand in the order of what they read, so that few edges
    cross.
    """
    column = [0.0] * len(operands)
    row_of = [0] * len(operands)
    for row, members in enumerate(nx.topological_generations(_view(operands))):

        def above(node: int) -> tuple[float, int]:
            """The mean column of what the node reads, and its number to settle ties."""
            sources = operands[node]
            return (sum(column[s] for s in sources) / len(sources) if sources else 0.0), node

        ordered = sorted(members, key=above)
        for place, node in enumerate(ordered):
            column[node], row_of[node] = place - (len(ordered) - 1) / 2, row
    return list(zip(column, row_of, strict=True))


def on_cycles(operands: Sequence[Sequence[int]]) -> set[int]:
    """Return the nodes that read themselves, through others or not; `operands[i]` are the nodes that node i reads."""
    view = _view(operands)
    rings = (ring for ring in nx.strongly_connected_components(view) if len(ring) > 1)
    return {*nx.nodes_with_selfloops(view), *(node for ring in rings for node in ring)}


def connected(operands: Sequence[Sequence[int]]) -> list[list[int]]:
    """Group nodes that are connected, whichever reads the other; each group, and the list of them, in order."""
    return sorted(map(sorted, nx.weakly_connected_components(_view(operands))))


def _view(operands: Sequence[Sequence[int]]) -> nx.DiGraph:
    view = nx.DiGraph()
    view.add_nodes_from(range(len(operands)))
    view.add_edges_from((source, node) for node, sources in enumerate(operands) for source in sources)
    return view


def _isomorphic(a: nx.MultiDiGraph, b: nx.MultiDiGraph) -> bool:
    nodes = categorical_node_match("signature", None)
    edges = categorical_multiedge_match(["operand", "output"], [None, None])
    return bool(nx.is_isomorphic(a, b, node_match=nodes, edge_match=edges))
