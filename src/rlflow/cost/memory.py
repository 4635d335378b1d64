"""The memory that an inference needs: constants from the time the model is loaded, activations while they live."""

from __future__ import annotations

from rlflow.ir.graph import Graph


def peak_memory_bytes(graph: Graph) -> int:
    """Return the bytes of constants that running nodes read, plus the most activations that are alive at once.

    Nodes run in the graph's order. An activation lives from its computation to its last reader. Unknown dimensions
    count as 1.
    """
    nodes, consumers = graph.nodes, graph.consumers
    unread = [i for i in graph.inputs if not consumers[i]]
    living = {i for i in graph.output_nodes if not nodes[i].constant}.union(unread)
    alive = peak = sum(_result_bytes(graph, i) for i in living)

    # Backwards, the last reader of an activation comes first, and its computation ends its life.
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
    return sum(tensor_type.nbytes for tensor_type in graph.nodes[identifier].types if tensor_type is not None)


def _is_read(graph: Graph, constant: int) -> bool:
    """Return True if a running node reads the constant: then it is kept after constant expressions are folded."""
    return constant in graph.output_nodes or any(not graph.nodes[c].constant for c in graph.consumers[constant])
