"""A model in words: what goes in and comes out, its operators by number, and its layers; or two models beside each
other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rlflow.ir.graph import Graph
from rlflow.ir.node import WEIGHT
from rlflow.show.layers import Layer, unique_layers


def summary(graph: Graph, after: Graph | None = None) -> str:
    """Describe a model; where there is a second one, every number of the first is followed by the second's."""
    graphs = [graph] if after is None else [graph, after]
    lines = [f"opset {_beside([g.header.opset for g in graphs])}"]
    lines += [f"input   {graph.nodes[i].names[0]}: {graph.nodes[i].types[0]}" for i in graph.inputs]
    lines += [
        f"output  {name}: {graph.type_of(ref)}" for name, ref in zip(graph.output_names, graph.outputs, strict=True)
    ]
    megabytes = [f"{_weight_bytes(g) / 1e6:.1f}" for g in graphs]
    lines.append(f"weights {_beside(megabytes)} MB")

    lines += ["", f"{_beside([len(g.order) for g in graphs])} operators run:", *_operators(graphs)]
    layers = [unique_layers(g) for g in graphs]
    total = _beside([sum(layer.count for layer in found) for found in layers])
    lines += ["", f"{total} layers, {_beside([len(found) for found in layers])} of them unique:"]
    lines += _layers(layers[-1])
    return "\n".join(lines)


def _operators(graphs: list[Graph]) -> Iterator[str]:
    """One line for each operator, the most frequent first."""
    counts = [Counter(g.nodes[i].op for i in g.order) for g in graphs]
    names = sorted(set().union(*counts), key=lambda op: ([-count[op] for count in counts], op))
    for op in names:
        yield f"  {op:24s} {_beside([count[op] for count in counts])}"


def _layers(layers: list[Layer]) -> Iterator[str]:
    """One line for each layer, the most frequent first."""
    for layer in sorted(layers, key=lambda layer: -layer.count):
        yield f"  {layer.count:4d} x {', '.join(layer.operators)}: {layer.result}"


def _weight_bytes(graph: Graph) -> int:
    """Bytes of the weights, each counted once, however many nodes hold it."""
    weights = {
        node.payload.digest: tensor_type.nbytes
        for node in graph.nodes.values()
        for tensor_type in node.types
        if node.op == WEIGHT and node.payload is not None and tensor_type is not None
    }
    return sum(weights.values())


def _beside(values: list[int] | list[str]) -> str:
    """One number, or two with an arrow where they differ."""
    return " -> ".join(dict.fromkeys(map(str, values)))
