"""The effects of an edit on a graph, told without making the edit.

`Graph.replace` takes nodes to add and values to read in place of others. `preview` takes the same and tells which
running nodes would go and which would stay with other operands or other readers. Replacing Relu in

    x -> MatMul -> Relu -> Softmax            preview: MatMul stays, touched; Relu goes; Softmax is a reader, touched

The invariant: for nodes that run, `removed` and `touched` are those of the `Change` that `Graph.replace` would report.
Leaves and constant expressions, which cost nothing, are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlflow.ir.graph import Graph
from rlflow.ir.node import INPUT, Node, Ref


@dataclass(frozen=True, eq=False, slots=True)
class Preview:
    """An edit that was not made: what `Graph.replace` takes, and the running nodes that it would concern.

    - `removed`: nodes that would go, `idle` those to add that nobody would read.
    - `touched`: nodes that would stay and be touched, as `Change` says;
      `readers` are those with other operands, and `gained` names for each value's node those that would newly read it.
    """

    added: Mapping[int, Node]
    substitution: Mapping[Ref, Ref]
    removed: set[int]
    idle: set[int]
    touched: set[int]
    readers: set[int]
    gained: Mapping[int, set[int]]


def preview(graph: Graph, added: Mapping[int, Node], substitution: Mapping[Ref, Ref]) -> Preview:
    """Return what `graph.replace(added, substitution)` would do."""
    nodes, consumers = graph.nodes, graph.consumers
    replaced = {ref.node for ref in substitution}
    readers: set[int] = set()
    gained: dict[int, set[int]] = {}
    for old, new in substitution.items():
        for reader in consumers[old.node]:
            if old in nodes[reader].inputs:
                readers.add(reader)
                gained.setdefault(new.node, set()).add(reader)
    for identifier, node in added.items():
        for source in node.sources:
            gained.setdefault(source, set()).add(identifier)

    given = [substitution[ref] for ref in graph.outputs if ref in substitution]
    outputs = {substitution.get(ref, ref).node for ref in graph.outputs} if given else graph.output_nodes
    gone = _swept(graph, added, substitution, replaced, gained, outputs)

    touched = readers | replaced | gained.keys() | {ref.node for ref in given}
    for identifier in gone:
        touched.update((added.get(identifier) or nodes[identifier]).sources)
    touched = {i for i in touched if i not in gone and i not in added and runs(nodes[i])}
    return Preview(
        added,
        substitution,
        removed={i for i in gone if i not in added},
        idle={i for i in gone if i in added},
        touched=touched,
        readers={i for i in readers if i in touched},
        gained={i: made - gone for i, made in gained.items()},
    )


def runs(node: Node) -> bool:
    """Return True if a node is neither a leaf nor a constant expression."""
    return not node.constant and node.op != INPUT


def _swept(
    graph: Graph,
    added: Mapping[int, Node],
    substitution: Mapping[Ref, Ref],
    replaced: set[int],
    gained: Mapping[int, set[int]],
    outputs: set[int] | frozenset[int],
) -> set[int]:
    """Return the running nodes, old and new, that nobody would read after the edit."""
    nodes, consumers = graph.nodes, graph.consumers
    gone: set[int] = set()

    def is_read(identifier: int) -> bool:
        if not gained.get(identifier, gone) <= gone:
            return True
        for reader in consumers.get(identifier, ()):
            if reader in gone:
                continue
            if identifier not in replaced:
                return True
            inputs = nodes[reader].inputs
            if any(ref is not None and ref.node == identifier and ref not in substitution for ref in inputs):
                return True
        return False

    stack = [*replaced, *added]
    while stack:
        identifier = stack.pop()
        node = added.get(identifier) or nodes[identifier]
        if identifier in gone or identifier in outputs or not runs(node) or is_read(identifier):
            continue
        gone.add(identifier)
        stack.extend(node.sources)
        stack.extend(substitution[ref].node for ref in node.inputs if ref is not None and ref in substitution)
    return gone
