"""The layers of a model, and how many of them differ: the complexity of a graph as Table 1 of the RLFlow paper has it.

A layer is here a region across whose border ONNX Runtime fuses nothing (`rlflow.cost.regions`), such as a convolution
with the normalisation and the activation behind it. Reshapes and the like, which move no data, are no layers. Two
layers are the same if their graphs are isomorphic, whatever their weights hold: the twelve encoder blocks of BERT-Base
repeat the same few. The paper counts by hand, and not by one rule for all models.
"""

from __future__ import annotations

from dataclasses import dataclass

from rlflow.cost.fragment import leaves
from rlflow.cost.regions import Region, partition
from rlflow.ir.graph import Graph, make_graph
from rlflow.ir.networkx_view import isomorphism_classes
from rlflow.ir.node import WEIGHT, Node, Ref
from rlflow.ir.subgraph import excerpt
from rlflow.ops.registry import OPERATORS

_STEERING_ELEMENTS = 8
"""A constant of so few elements decides what a layer does (an exponent, an axis); a larger one is its weights."""


@dataclass(frozen=True)
class Layer:
    """One layer, which occurs `count` times: its operators in order, and the type of what it gives."""

    operators: tuple[str, ...]
    result: str
    count: int


@dataclass(frozen=True)
class _AnyValues:
    """The content of a weight whose numbers do not count."""

    digest: str = "any values"


def unique_layers(graph: Graph) -> list[Layer]:
    """Return the layers that differ, in the order in which they first occur."""
    position = graph.positions()
    regions = sorted(partition(graph).regions, key=lambda region: position[region[0]])
    layers = [region for region in regions if any(_moves_data(graph.nodes[i]) for i in region)]

    classes = isomorphism_classes(_without_values(graph, region) for region in layers)
    return [_described(graph, layers[members[0]], len(members)) for members in classes]


def _described(graph: Graph, region: Region, count: int) -> Layer:
    return Layer(tuple(graph.nodes[i].op for i in region), str(graph.nodes[region[-1]].types[0]), count)


def _moves_data(node: Node) -> bool:
    operator = OPERATORS.get(node.op)
    return operator is None or not operator.traits.view


def _without_values(graph: Graph, region: Region) -> Graph:
    """The region as a graph whose weights are known by their type alone."""
    values = [Ref(i, output) for i in region for output in range(len(graph.nodes[i].types))]
    outputs = [value for value in values if leaves(graph, value, region)]
    cut = excerpt(graph, region, outputs)
    nodes = {i: _emptied(node) for i, node in cut.nodes.items()}
    return make_graph(nodes, cut.inputs, cut.outputs, cut.output_names, cut.header)


def _emptied(node: Node) -> Node:
    (tensor_type, *_) = node.types
    is_data = tensor_type is not None and tensor_type.is_float and tensor_type.elements > _STEERING_ELEMENTS
    if node.op != WEIGHT or not is_data:
        return node
    return Node(WEIGHT, (), {}, node.types, node.names, True, _AnyValues())
