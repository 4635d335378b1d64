"""The tolerance between two models that compute the same: what rounding explains, and no more.

Exact rewrites reorder floating-point sums, so outputs agree up to rounding only. The error of one
reduction (MatMul, LayerNormalization, Softmax, ...) is a small multiple of the machine epsilon relative to
the largest value; along a path of d reductions, rounding errors of random sign add up like a random walk.
Hence, relative to the largest absolute reference value of an output,

    tolerance = 16 * epsilon * sqrt(1 + d)

where d is the largest number of reductions on a path of the *original* graph (a candidate cannot loosen its
own test) and epsilon belongs to the coarsest float type that the original declares or casts to. Integers and
booleans must agree exactly.
"""

import math
from collections.abc import Iterator

from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from rlflow.ops import registry

TOLERANCE_EPSILONS = 16
DOUBLE_EPSILON = 2.0**-52

_EPSILONS: dict[int, float] = {
    TensorProto.BFLOAT16: 2.0**-7,
    TensorProto.FLOAT16: 2.0**-10,
    TensorProto.FLOAT: 2.0**-23,
    TensorProto.DOUBLE: DOUBLE_EPSILON,
}
_REDUCTIONS = registry.types_having(lambda traits: traits.accumulates)
_NAMES_ELEMENT_TYPE = {o.op_type: o.onnx.element_type for o in registry.OPERATORS.values() if o.onnx.element_type}
_RANDOM = registry.types_having(lambda traits: traits.draws_numbers)


def tolerance_of(model: ModelProto) -> float:
    """Return the largest relative error that rounding explains, from the model's coarsest float type and its reductions
    in a row.
    """
    return TOLERANCE_EPSILONS * coarsest_epsilon(model) * math.sqrt(1 + _reduction_depth(model.graph))


def coarsest_epsilon(model: ModelProto) -> float:
    """Machine epsilon of the coarsest float type of the model, 0 if it has none."""
    return max((_EPSILONS[element] for element in _element_types(model.graph) if element in _EPSILONS), default=0.0)


def draws_at_random(model: ModelProto) -> bool:
    """Return True if an operator draws numbers, which any rewrite changes: ONNX Runtime seeds it by its place."""
    return _draws(model.graph)


def _draws(graph: GraphProto) -> bool:
    return any(node.op_type in _RANDOM or any(map(_draws, bodies(node))) for node in graph.node)


def _element_types(graph: GraphProto) -> Iterator[int]:
    for value in (*graph.input, *graph.output, *graph.value_info):
        yield value.type.tensor_type.elem_type
    for tensor in graph.initializer:
        yield tensor.data_type
    for node in graph.node:
        named = _NAMES_ELEMENT_TYPE.get(node.op_type)
        yield from (attribute.i for attribute in node.attribute if attribute.name == named)
        for body in bodies(node):
            yield from _element_types(body)


def _reduction_depth(graph: GraphProto) -> int:
    """Largest number of reductions on one path; a body counts as if it ran once."""
    depth: dict[str, int] = {}
    for node in graph.node:
        own = (node.op_type in _REDUCTIONS) + sum(_reduction_depth(body) for body in bodies(node))
        reached = own + max((depth.get(name, 0) for name in node.input), default=0)
        depth |= dict.fromkeys(node.output, reached)
    return max(depth.values(), default=0)


def bodies(node: NodeProto) -> list[GraphProto]:
    """The graphs inside a node."""
    return [body for attribute in node.attribute for body in (attribute.g, *attribute.graphs) if body.node]
