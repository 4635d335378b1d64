"""A few nodes of a graph, with the weights that they need, as a graph of their own."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rlflow.ir.graph import Graph, make_graph
from rlflow.ir.node import INPUT, Node, Ref


def boundary(graph: Graph, inside: Collection[int]) -> tuple[Ref, ...]:
    """Return the values that the nodes `inside` read from outside at run time, each once; constants do not count."""
    refs = (ref for i in inside for ref in graph.nodes[i].inputs if ref is not None and ref.node not in inside)
    return tuple(dict.fromkeys(ref for ref in refs if not graph.nodes[ref.node].constant))


def excerpt(graph: Graph, inside: Collection[int], outputs: Sequence[Ref]) -> Graph:
    """Return the nodes `inside`, under the ids that they have, with all constants that they need, as a graph.

    Its inputs are `boundary(graph, inside)`, named value_0, value_1, ...; its `outputs` are named output_0, ...
    """
    read = boundary(graph, inside)
    # New ids from `next_id` on cannot be those of any node inside.
    inputs = {ref: graph.next_id + place for place, ref in enumerate(read)}
    nodes = {i: graph.nodes[i] for i in _constants(graph, inside)}
    for place, (ref, identifier) in enumerate(inputs.items()):
        nodes[identifier] = Node(INPUT, (), {}, (graph.type_of(ref),), (f"value_{place}",))

    for identifier in inside:
        node = graph.nodes[identifier]
        operands = tuple(Ref(inputs[ref]) if ref in inputs else ref for ref in node.inputs)
        nodes[identifier] = node.with_inputs(operands)

    names = [f"output_{place}" for place in range(len(outputs))]
    return make_graph(nodes, list(inputs.values()), outputs, names, graph.header)


def _constants(graph: Graph, inside: Collection[int]) -> set[int]:
    """Return the nodes of all constant expressions that the nodes `inside` read."""
    found: set[int] = set()
    stack = [source for i in inside for source in graph.nodes[i].sources]
    while stack:
        identifier = stack.pop()
        if identifier not in found and graph.nodes[identifier].constant:
            found.add(identifier)
            stack.extend(graph.nodes[identifier].sources)
    return found
