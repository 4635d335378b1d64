"""The invariants of a graph, checked after every edit in tests and in the rollouts of CI.

- `consumers` is the exact inverse of the operands, each reader once.
- Leaves read nothing, and the graph's inputs are its Input nodes.
- A constant node depends on no input.
- Every node is read, is an output, or is an input.
- Output names are unique, and `next_id` is above every id in use.
- There is no cycle.
"""

from __future__ import annotations

from rlflow.errors import GraphError
from rlflow.ir.graph import Graph
from rlflow.ir.node import INPUT, LEAVES, Node


def validate(graph: Graph) -> None:
    """Raise `GraphError` naming the first broken invariant and its node; the cost is linear in the graph."""
    if set(graph.consumers) != set(graph.nodes):
        raise GraphError("the consumer index and the nodes disagree")
    for identifier, node in graph.nodes.items():
        _check_operands(graph, identifier, node, _words(identifier, node))
    for identifier, node in graph.nodes.items():
        where = _words(identifier, node)
        _check_readers(graph, identifier, where)
        if len(node.types) != len(node.names):
            raise GraphError(f"{where}: {len(node.types)} types for {len(node.names)} outputs")
        if node.op in LEAVES and node.inputs:
            raise GraphError(f"{where} is a leaf and has operands")
        if (node.op == INPUT) != (identifier in graph.inputs):
            raise GraphError(f"{where}: the graph's inputs are its Input nodes and no others")
        if node.constant and (node.op == INPUT or any(not graph.nodes[s].constant for s in node.sources)):
            raise GraphError(f"{where} is marked constant but depends on an input")
        if node.op != INPUT and not graph.consumers[identifier] and identifier not in graph.output_nodes:
            raise GraphError(f"{where} is dead: nobody reads it and it is no output")
    _check_interface(graph)
    _check_acyclic(graph)


def _words(identifier: int, node: Node) -> str:
    return f"node {identifier} ({node.op} {node.names[:1]})"


def _check_operands(graph: Graph, identifier: int, node: Node, where: str) -> None:
    for ref in node.inputs:
        if ref is None:
            continue
        if ref.node not in graph.nodes:
            raise GraphError(f"{where} reads node {ref.node}, which is not in the graph")
        if not 0 <= ref.index < len(graph.nodes[ref.node].types):
            raise GraphError(f"{where} reads output {ref.index} of node {ref.node}, which has fewer")
        if identifier not in graph.consumers[ref.node]:
            raise GraphError(f"{where} is missing from the consumers of node {ref.node}")


def _check_readers(graph: Graph, identifier: int, where: str) -> None:
    readers = graph.consumers[identifier]
    if len(set(readers)) != len(readers):
        raise GraphError(f"{where} lists a consumer twice")
    for reader in readers:
        if reader not in graph.nodes or identifier not in graph.nodes[reader].sources:
            raise GraphError(f"{where} lists {reader} as a consumer, which does not read it")


def _check_interface(graph: Graph) -> None:
    if len(graph.outputs) != len(graph.output_names) or len(set(graph.output_names)) != len(graph.output_names):
        raise GraphError(f"{len(graph.outputs)} outputs under the names {graph.output_names}")
    for identifier in graph.inputs:
        if identifier not in graph.nodes:
            raise GraphError(f"input {identifier} is not in the graph")
    for ref, name in zip(graph.outputs, graph.output_names, strict=True):
        if ref.node not in graph.nodes:
            raise GraphError(f"output {name!r} is node {ref.node}, which is not in the graph")
        if not 0 <= ref.index < len(graph.nodes[ref.node].types):
            raise GraphError(f"output {name!r} is output {ref.index} of node {ref.node}, which has fewer")
    if graph.nodes and graph.next_id <= max(graph.nodes):
        raise GraphError(f"the next node would be {graph.next_id}, which is not above the ids in use")


def _check_acyclic(graph: Graph) -> None:
    # Kahn's algorithm: nodes are done once all their operands are; those on a cycle never are.
    waiting = {i: len(n.sources) for i, n in graph.nodes.items()}
    ready = [i for i, count in waiting.items() if count == 0]
    done = 0
    while ready:
        identifier = ready.pop()
        done += 1
        for reader in graph.consumers[identifier]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                ready.append(reader)
    if done != len(graph.nodes):
        stuck = sorted(i for i, count in waiting.items() if count and graph.nodes[i].op not in LEAVES)
        raise GraphError(f"the graph has a cycle through nodes {stuck[:8]}")
