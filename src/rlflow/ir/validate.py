"""The invariants of a graph, checked after every edit in tests and rollouts of CI."""

from __future__ import annotations

from rlflow.errors import GraphError
from rlflow.ir.graph import INPUT, LEAVES, Graph


def validate(graph: Graph) -> None:
    """Raise `GraphError` naming the first broken invariant and its node; cost linear in the graph."""
    for identifier, node in graph.nodes.items():
        where = f"node {identifier} ({node.op} {node.names[:1]})"
        if len(node.types) != len(node.names):
            raise GraphError(f"{where}: {len(node.types)} types for {len(node.names)} outputs")
        for ref in node.inputs:
            if ref is None:
                continue
            if ref.node not in graph.nodes:
                raise GraphError(f"{where} reads node {ref.node}, which is not in the graph")
            if not 0 <= ref.index < len(graph.nodes[ref.node].types):
                raise GraphError(f"{where} reads output {ref.index} of node {ref.node}, which has fewer")
            if identifier not in graph.consumers[ref.node]:
                raise GraphError(f"{where} is missing from the consumers of node {ref.node}")
        for reader in graph.consumers[identifier]:
            if reader not in graph.nodes or identifier not in graph.nodes[reader].sources:
                raise GraphError(f"{where} lists {reader} as a consumer, which does not read it")
        if node.constant and any(not graph.nodes[s].constant for s in node.sources):
            raise GraphError(f"{where} is marked constant but depends on an input")
        if node.op != INPUT and not graph.consumers[identifier] and identifier not in graph.output_nodes:
            raise GraphError(f"{where} is dead: nobody reads it and it is no output")
    if graph.consumers.keys() != graph.nodes.keys():
        raise GraphError("the consumer index and the nodes disagree")
    for ref, name in zip(graph.outputs, graph.output_names, strict=True):
        if ref.node not in graph.nodes:
            raise GraphError(f"output {name!r} is node {ref.node}, which is not in the graph")
    _check_acyclic(graph)


def _check_acyclic(graph: Graph) -> None:
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
