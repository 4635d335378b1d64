"""A graph as networkx sees it: for drawings, for structural analysis, and to compare graphs node by node."""

from __future__ import annotations

import networkx as nx
from networkx.algorithms.isomorphism import categorical_multiedge_match, categorical_node_match

from rlflow.ir.graph import Graph


def to_networkx(graph: Graph) -> nx.MultiDiGraph:
    """Nodes have `op`, `label` (the text of a drawing) and `signature`; edges go from a value to its reader and have
    `operand` and `output`, the positions at either end. Graph inputs and outputs are told apart by their position:
    each output of the graph is a node of its own, `("output", position)`.
    """
    view = nx.MultiDiGraph()
    for identifier, node in graph.nodes.items():
        signature = (node.signature, graph.inputs.index(identifier) if identifier in graph.inputs else -1)
        view.add_node(identifier, op=node.op, label=f"{node.op}\n{node.types[0]}", signature=signature)
        for operand, ref in enumerate(node.inputs):
            if ref is not None:
                view.add_edge(ref.node, identifier, operand=operand, output=ref.index)
    for position, (name, ref) in enumerate(zip(graph.output_names, graph.outputs, strict=True)):
        view.add_node(("output", position), op="Output", label=name, signature=("output", position))
        view.add_edge(ref.node, ("output", position), operand=0, output=ref.index)
    return view


def isomorphic(a: Graph, b: Graph) -> bool:
    """Whether the graphs differ in nothing but names and numbers of nodes.

    Stricter than an equal structural hash, which is about the expression: there a value that is computed twice equals
    one that is shared.
    """
    return bool(
        nx.is_isomorphic(
            to_networkx(a),
            to_networkx(b),
            node_match=categorical_node_match("signature", None),
            edge_match=categorical_multiedge_match(["operand", "output"], [None, None]),
        )
    )
