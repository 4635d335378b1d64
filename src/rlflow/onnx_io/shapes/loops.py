"""Types of the values that a Loop carries, proven by induction over its iterations.

ONNX's own inference tells no shape of a carried value, since an iteration may change it. But if the body, given values
of the types that the Loop begins with, returns values of the same types, then so does every iteration, by induction,
and so does a Loop without iterations. In

    for i in range(n): x = Relu(x)            x begins as float32[batch, 8], and so x ends

the type of x is proven; if the body appended a row to x, it would not be. Values whose type changes are assumed to have
only their element type, and the others are tried again, until all that are left are proven.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from onnx import GraphProto, ModelProto, NodeProto, TypeProto, ValueInfoProto

from rlflow.onnx_io.external_data import copy_fields

Infer = Callable[[ModelProto], ModelProto]
"""Adds all types that it infers to a model's value_info."""


def carried_types(loop: NodeProto, model: ModelProto, infer: Infer) -> dict[str, TypeProto]:
    """Return the proven types of the values that an iteration gets from the one before, by their names in the body.

    `loop` is a node of `model`, whose own types have been inferred.
    """
    return _proven(loop, model, infer)[0]


def loop_outputs(loop: NodeProto, model: ModelProto, infer: Infer) -> Iterator[ValueInfoProto]:
    """Yield the outputs of a Loop of this model, whose types have been inferred, as far as their types are proven."""
    carried = list(body_of(loop).input)[2:]  # after the iteration number and the condition
    begun, results = _proven(loop, model, infer)
    for name, inner in zip(loop.output, carried, strict=False):
        if name and inner.name in begun:
            yield ValueInfoProto(name=name, type=begun[inner.name])
    for name, result in zip(list(loop.output)[len(carried) :], results[1 + len(carried) :], strict=False):
        if name and result.tensor_type.HasField("shape"):
            yield ValueInfoProto(name=name, type=_stacked(result))


def body_of(loop: NodeProto) -> GraphProto:
    """Return the body of a Loop; `ValueError` if it has none."""
    (body,) = (attribute.g for attribute in loop.attribute if attribute.name == "body")
    return body


def _proven(loop: NodeProto, model: ModelProto, infer: Infer) -> tuple[dict[str, TypeProto], list[TypeProto]]:
    """Return the proven types of carried values, by their names in the body, and the types of all its results."""
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
        kept = {name: proto for name, proto in begun.items() if ended[name] == proto}
        if len(kept) == len(begun):
            return begun, results  # the induction step holds for all that are left
        begun = kept


def _results(
    body: GraphProto,
    begun: Mapping[str, TypeProto],
    outside: Mapping[str, ValueInfoProto],
    model: ModelProto,
    infer: Infer,
) -> list[TypeProto]:
    """Infer the types of a body's results from those that it begins with; what it declares proves nothing."""
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

    # The values that the body captures: constants with their values, the others as inputs.
    own = {name for node in body.node for name in node.output} | {value.name for value in values_of(body)}
    constants = [tensor for tensor in model.graph.initializer if tensor.name not in own]
    alone.graph.initializer.extend(constants)
    own.update(tensor.name for tensor in constants)
    alone.graph.input.extend(value for name, value in outside.items() if name not in own)

    inferred = {value.name: value.type for value in values_of(infer(alone).graph)}
    return [inferred[value.name] for value in body.output]


def values_of(graph: GraphProto) -> Iterator[ValueInfoProto]:
    """Yield the names and types of all values whose type the graph declares."""
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


def _is_known(proto: TypeProto) -> bool:
    """Return True for a tensor whose every dimension is a number or has a name."""
    tensor = proto.tensor_type
    return tensor.HasField("shape") and all(dimension.WhichOneof("value") for dimension in tensor.shape.dim)


def _forget_shape(proto: TypeProto) -> None:
    if proto.WhichOneof("value") == "tensor_type":
        proto.tensor_type.ClearField("shape")


def _stacked(proto: TypeProto) -> TypeProto:
    """Return the type of a scan output: one result for each iteration, along a new first axis of unknown size.

    Symbols are dropped, since they have a meaning only in the body.
    """
    stacked = TypeProto()
    stacked.tensor_type.elem_type = proto.tensor_type.elem_type
    stacked.tensor_type.shape.dim.add()
    for dimension in proto.tensor_type.shape.dim:
        inner = stacked.tensor_type.shape.dim.add()
        if dimension.HasField("dim_value"):
            inner.dim_value = dimension.dim_value
    return stacked
