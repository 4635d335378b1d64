"""A graph's identity: equal for graphs that compute the same expression from the same weights, whatever the
names.

A Merkle hash: a node's hash combines its signature with its operands' hashes. Python's hash of a tuple of
integers is deterministic across processes (only text is salted), and an order of magnitude faster than a
cryptographic digest.
"""

from __future__ import annotations

from rlflow.ir.graph import Graph, Node, Ref


def structural_hash(graph: Graph) -> str:
    """16 hexadecimal digits. Cost: linear in the nodes that run, about a microsecond each."""
    hashes = node_hashes(graph)
    content = (
        tuple(_value(hashes, ref) for ref in graph.outputs),
        tuple(graph.nodes[i].signature for i in graph.inputs),
    )
    return f"{hash(content) & 0xFFFFFFFFFFFFFFFF:016x}"


def node_hashes(graph: Graph) -> dict[int, int]:
    """Node id -> Merkle hash of the expression that the node computes, for leaves and constants as well."""
    nodes = graph.nodes
    hashes: dict[int, int] = {}
    for position, identifier in enumerate(graph.inputs):
        hashes[identifier] = hash((nodes[identifier].signature, position))
    for identifier in graph.order:
        node = nodes[identifier]
        for source in node.sources:
            if source not in hashes:
                _add_constant(source, graph, hashes)
        hashes[identifier] = _combine(node, hashes)
    for ref in graph.outputs:
        if ref.node not in hashes:
            _add_constant(ref.node, graph, hashes)
    return hashes


def _add_constant(identifier: int, graph: Graph, hashes: dict[int, int]) -> None:
    stack = [identifier]
    while stack:
        node = graph.nodes[stack[-1]]
        waiting = [s for s in node.sources if s not in hashes]
        if waiting:
            stack.extend(waiting)
        else:
            hashes[stack.pop()] = _combine(node, hashes)


def _combine(node: Node, hashes: dict[int, int]) -> int:
    if not node.inputs:
        return node.signature
    return hash((node.signature, *[0 if ref is None else _value(hashes, ref) for ref in node.inputs]))


def _value(hashes: dict[int, int], ref: Ref) -> int:
    return hashes[ref.node] if ref.index == 0 else hash((hashes[ref.node], ref.index))
