"""Types of what a Loop carries: proven where an iteration that begins with a type ends with it.

ONNX's own inference tells no shape of a carried value, since an iteration may change it. But if the body, given values
of the types that the Loop begins with, returns values of the same types, then so does every iteration, by induction,
and a Loop of none. Of carried values for which that fails, only the element type is assumed, and the others are tried
again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from onnx import GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto

from rlflow.onnx_io.external_data import copy_fields

Infer = Callable[[ModelProto], ModelProto]
"""Adds what it infers to a model's value_info."""


def carried_types(loop: NodeProto, model: ModelProto, infer: Infer) -> dict[str, TypeProto]:
    """Types of what each iteration is given by the one before, by its names in the body, as far as they are proven.

    The types of the values of `model`, of which the Loop is a node, have been inferred.
    """
    return _proven(loop, model, infer)[0]


def loop_outputs(loop: NodeProto, model: ModelProto, infer: Infer) -> Iterator[ValueInfoProto]:
    """What can be told of the outputs of a Loop of this model, whose values have been inferred."""
    carried = list(body_of(loop).input)[2:]
    begun, results = _proven(loop, model, infer)
    for name, inner in zip(loop.output, carried, strict=False):
        if name and inner.name in begun:
            yield ValueInfoProto(name=name, type=begun[inner.name])
    for name, result in zip(list(loop.output)[len(carried) :], results[1 + len(carried) :], strict=False):
        if name and result.tensor_type.HasField("shape"):
            yield ValueInfoProto(name=name, type=_stacked(result))


def body_of(loop: NodeProto) -> GraphProto:
    """`ValueError` where it has none."""
    (body,) = (attribute.g for attribute in loop.attribute if attribute.name == "body")
    return body


def _proven(loop: NodeProto, model: ModelProto, infer: Infer) -> tuple[dict[str, TypeProto], list[TypeProto]]:
    """Types of carried values by their names in the body, and those of all results of the body."""
    body = body_of(loop)
    outside = {value.name: value for value in values_of(model.graph)}
    carried = list(body.input)[2:]
    begun = {
        inner.name: outside[name].type
        for inner, name in zip(carried, list(loop.input)[2:], strict=True)
        if name in outside and _is_known(outside[name].type)
    }
    while True:
        results = _results(body, begun, outside, model, infer)
        ended = {inner.name: result for inner, result in zip(carried, results[1:], strict=False)}
        kept = {name: kind for name, kind in begun.items() if ended[name] == kind}
        if len(kept) == len(begun):
            return begun, results
        begun = kept


def _results(
    body: GraphProto,
    begun: Mapping[str, TypeProto],
    outside: Mapping[str, ValueInfoProto],
    model: ModelProto,
    infer: Infer,
) -> list[TypeProto]:
    """Types of the body's results where carried values have these types; what the body declares proves nothing."""
    alone = ModelProto()
    copy_fields(model, alone, skipped={"graph"})
    copy_fields(body, alone.graph, skipped={"value_info"})
    for value in alone.graph.input[2:]:
        if value.name in begun:
            value.type.CopyFrom(begun[value.name])
        else:
            _forget_shape(value.type)
    for value in alone.graph.output:
        _forget_shape(value.type)
    own = {name for node in body.node for name in node.output} | {value.name for value in values_of(body)}
    constants = [tensor for tensor in model.graph.initializer if tensor.name not in own]
    alone.graph.initializer.extend(constants)
    own.update(tensor.name for tensor in constants)
    alone.graph.input.extend(value for name, value in outside.items() if name not in own)
    inferred = {value.name: value.type for value in values_of(infer(alone).graph)}
    return [inferred[value.name] for value in body.output]


def values_of(graph: GraphProto) -> Iterator[ValueInfoProto]:
    """Names and types of all values of which the graph declares a type."""
    yield from graph.value_info
    yield from graph.input
    yield from graph.output
    for tensor in graph.initializer:
        value = ValueInfoProto(name=tensor.name)
        value.type.tensor_type.elem_type = tensor.data_type
        value.type.tensor_type.shape.SetInParent()
        for size in tensor.dims:
            value.type.tensor_type.shape.dim.add(dim_value=size)
        yield value


def _is_known(kind: TypeProto) -> bool:
    """A tensor of which every dimension is a number or has a name."""
    tensor = kind.tensor_type
    return tensor.HasField("shape") and all(dimension.WhichOneof("value") for dimension in tensor.shape.dim)


def _forget_shape(kind: TypeProto) -> None:
    if kind.WhichOneof("value") == "tensor_type":
        kind.tensor_type.ClearField("shape")


def _stacked(kind: TypeProto) -> TypeProto:
    """One for each iteration, end to end; names of dimensions are the body's own."""
    stacked = TypeProto()
    stacked.tensor_type.elem_type = kind.tensor_type.elem_type
    stacked.tensor_type.shape.dim.add()
    for dimension in kind.tensor_type.shape.dim:
        inner = stacked.tensor_type.shape.dim.add()
        if dimension.HasField("dim_value"):
            inner.dim_value = dimension.dim_value
    return stacked
