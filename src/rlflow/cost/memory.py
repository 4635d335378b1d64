"""How much memory an inference needs: what is computed when the model is loaded, and activations while they live."""

from __future__ import annotations

from rlflow.ir.graph import Graph


def peak_memory_bytes(graph: Graph) -> int:
    """The constants that running nodes read, plus the largest set of activations alive at once, in the graph's order.

    Each activation lives from its computation to its last reader, which comes first going backwards.
    """
    nodes, consumers = graph.nodes, graph.consumers
    unread = [i for i in graph.inputs if not consumers[i]]
    living = {i for i in graph.output_nodes if not nodes[i].constant}.union(unread)
    alive = peak = sum(_result_bytes(graph, i) for i in living)
    for identifier in reversed(graph.order):
        for source in nodes[identifier].sources:
            if source not in living and not nodes[source].constant:
                living.add(source)
                alive += _result_bytes(graph, source)
        peak = max(peak, alive)
        alive -= _result_bytes(graph, identifier)
    constants = sum(_result_bytes(graph, i) for i, node in nodes.items() if node.constant and _is_read(graph, i))
    return constants + max(peak, alive)


def _result_bytes(graph: Graph, identifier: int) -> int:
    return sum(kind.nbytes for kind in graph.nodes[identifier].types if kind is not None)


def _is_read(graph: Graph, constant: int) -> bool:
    """By a node that runs: then it is in memory after constant expressions have been folded."""
    return constant in graph.output_nodes or any(not graph.nodes[c].constant for c in graph.consumers[constant])
