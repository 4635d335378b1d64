"""Types of a model's values: ONNX's own shape inference, given what it needs and kept from what it cannot bear.

`infer_types(model)` returns the type of every value by name, such as float32[batch, 128, 768]. On the way there

- large weights become inputs, so that no memory is spent on their values (`without_large_weights`);
- unnamed dimensions of inputs get symbols, so that they can be recognised downstream, and numbers declared for other
  values give way to symbols that follow from the inputs;
- ONNX follows the values of shapes (data propagation) only where no vector is so long that its memory would run out;
- types that a Loop carries are proven by induction (`rlflow.onnx_io.shapes.loops`).

Invariant: what is inferred holds for all inputs of the declared types; what does not follow stays unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from math import prod

import onnx
from onnx import helper

from rlflow.ir.tensor_type import TensorType
from rlflow.onnx_io.data_place import is_outside
from rlflow.onnx_io.element_type import from_type_proto, to_value_info
from rlflow.onnx_io.external_data import copy_fields
from rlflow.onnx_io.shapes.loops import loop_outputs
from rlflow.ops import microsoft
from rlflow.ops.registry import NO_TRAITS, TRAITS

_MOST_ELEMENTS = 1024  # of shapes, axes or indices, whose values shape inference may read
_LONGEST_SHAPE = 2**20
"""The longest vector that may be a shape or hold axes. ONNX's inference counts up to the length of such a vector, and
data propagation follows each of its elements, until the memory runs out."""


def infer_types(model: onnx.ModelProto, dimensions: Mapping[str, int] | None = None) -> dict[str, TensorType | None]:
    """Return the type of every value by its name, None if ONNX infers none.

    Dynamic dimensions named in `dimensions` get these sizes.
    """
    light = with_types(model, dimensions)
    values = (*light.graph.value_info, *light.graph.input, *light.graph.output)
    return {v.name: from_type_proto(v.type) for v in values}


def with_types(model: onnx.ModelProto, dimensions: Mapping[str, int] | None = None) -> onnx.ModelProto:
    """Copy a model without large weights so that it declares all inferred types; unnamed dimensions get symbols."""
    light = without_large_weights(model)
    if not declares_weights(model):
        _forget_defaults(light.graph)
    _declare_sparse(light.graph)
    pin_dimensions(light.graph, dimensions or {})
    _name_dimensions(light)
    _follow_inputs(light)

    light = inferred(light)
    with suppress(KeyError, ValueError):  # a malformed Loop
        light = _with_loops(light)
    return light


def declares_weights(model: onnx.ModelProto) -> bool:
    """Return True if the model lists its weights among the inputs, as every file before IR version 4 had to.

    ONNX Runtime does not let a caller override these.
    """
    return model.ir_version < 4


def _forget_defaults(graph: onnx.GraphProto) -> None:
    """Drop the default values of inputs: a caller may feed, say, another shape than inference would read there."""
    fed = {value.name for value in graph.input}
    kept = [tensor for tensor in graph.initializer if tensor.name not in fed]
    del graph.initializer[:]
    graph.initializer.extend(kept)


def _declare_sparse(graph: onnx.GraphProto) -> None:
    """Make sparse weights inputs of their dense types: what reads them reads dense tensors, and ONNX infers none."""
    for sparse in graph.sparse_initializer:
        dense = helper.make_tensor_value_info(sparse.values.name, sparse.values.data_type, list(sparse.dims))
        graph.input.append(dense)
    del graph.sparse_initializer[:]


def inferred(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with everything that ONNX infers from its declared types, which for Loops is nothing."""
    with suppress(RuntimeError, ValueError, MemoryError, onnx.shape_inference.InferenceError):
        plain = onnx.shape_inference.infer_shapes(model)
        if any(map(_is_long, (*plain.graph.value_info, *plain.graph.output))):
            return plain
        return onnx.shape_inference.infer_shapes(model, data_prop=True)
    return model


def _is_long(value: onnx.ValueInfoProto) -> bool:
    dimensions = value.type.tensor_type.shape.dim
    return len(dimensions) == 1 and dimensions[0].dim_value > _LONGEST_SHAPE


def _with_loops(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return the model with the types that its Loops carry, and all that follow from them.

    The outputs of one Loop may tell what another one carries, so that all are tried again until nothing is new.
    """
    waiting = [node for node in model.graph.node if node.op_type == "Loop" and node.domain in ("", "ai.onnx")]
    while waiting:
        told = [list(loop_outputs(loop, model, inferred)) for loop in waiting]
        waiting = [loop for loop, outputs in zip(waiting, told, strict=True) if not outputs]
        if not any(told):
            break

        known = {output.name: output for outputs in told for output in outputs}
        for value in (*model.graph.value_info, *model.graph.output):
            if value.name in known:
                _refine(value.type, known.pop(value.name).type)
        model.graph.value_info.extend(known.values())
        model = inferred(model)
    return model


def _refine(declared: onnx.TypeProto, known: onnx.TypeProto) -> None:
    """Add to a declared type the shape that is known, or the numbers among its dimensions."""
    dimensions, others = declared.tensor_type.shape.dim, known.tensor_type.shape.dim
    if not declared.tensor_type.HasField("shape"):
        declared.CopyFrom(known)
    elif len(dimensions) == len(others):
        for dimension, other in zip(dimensions, others, strict=True):
            if other.HasField("dim_value") and not dimension.HasField("dim_value"):
                dimension.dim_value = other.dim_value


def infer_node_types(
    proto: onnx.NodeProto,
    model: onnx.ModelProto,
    types: Mapping[str, TensorType],
    constants: Mapping[str, onnx.TensorProto],
) -> dict[str, TensorType | None]:
    """Infer the types of a node's outputs, by name, from the types of its operands and the values of constant ones.

    The result is empty if ONNX infers none.
    """
    if proto.domain == microsoft.DOMAIN:  # of which ONNX knows nothing
        traits = TRAITS.get(f"{proto.domain}.{proto.op_type}", NO_TRAITS)
        alike = [proto.output[i] for i in traits.typed_like_operand if i < len(proto.output)]
        return dict.fromkeys(alike, types.get(proto.input[0]))
    versions = {o.domain: o.version for o in model.opset_import}
    refusals = (onnx.defs.SchemaError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError)
    try:
        schema = onnx.defs.get_schema(proto.op_type, versions.get(proto.domain, 0), proto.domain)
        inferred = onnx.shape_inference.infer_node_outputs(
            schema,
            proto,
            {name: to_value_info(name, tensor_type).type for name, tensor_type in types.items()},
            dict(constants),
            opset_imports=list(model.opset_import),
            ir_version=model.ir_version,
        )
    except (*refusals, RuntimeError, ValueError, TypeError, MemoryError):
        return {}
    return {name: from_type_proto(proto_type) for name, proto_type in inferred.items()}


def pin_dimensions(graph: onnx.GraphProto, dimensions: Mapping[str, int]) -> None:
    """Declare these sizes for all dimensions of these names in inputs, outputs and values of the graph."""
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.WhichOneof("value") == "tensor_type":
            for name, dimension in zip(dimension_names(value), value.type.tensor_type.shape.dim, strict=True):
                if name in dimensions:
                    dimension.dim_value = dimensions[name]


def dimension_names(value: onnx.ValueInfoProto) -> list[str]:
    """Name the dimensions of a tensor: by their symbol, or, for unnamed ones, by their place, as in "x[0]".

    The name of a dimension that is a number is "".
    """
    return [
        "" if dimension.HasField("dim_value") else dimension.dim_param or f"{value.name}[{place}]"
        for place, dimension in enumerate(value.type.tensor_type.shape.dim)
    ]


def _name_dimensions(model: onnx.ModelProto) -> None:
    """Give each unnamed dimension a symbol of its own, so that it can be recognised downstream.

    So do the lengths of vectors that are too long for ONNX's inference, which takes them to be lists of axes.
    """
    shapes = [v.type.tensor_type.shape.dim for v in (*model.graph.input, *model.graph.value_info, *model.graph.output)]
    taken = {dimension.dim_param for dimensions in shapes for dimension in dimensions}
    fresh = (name for number in count() if (name := f"#{number}") not in taken)
    for value in (*model.graph.input, *model.graph.value_info):
        if value.type.WhichOneof("value") != "tensor_type":
            continue
        dimensions = value.type.tensor_type.shape.dim
        for dimension in dimensions:
            unnamed = dimension.WhichOneof("value") is None
            if unnamed or (len(dimensions) == 1 and dimension.dim_value > _LONGEST_SHAPE):
                dimension.dim_param = next(fresh)


def _follow_inputs(model: onnx.ModelProto) -> None:
    """Replace numbers declared for values by the symbols, or other numbers, that follow from the inputs.

    Tools that make a dimension of the inputs dynamic often leave the old number in the types of other values.
    """
    told = onnx.ModelProto()
    told.CopyFrom(model)
    del told.graph.value_info[:]
    for output in told.graph.output:
        output.type.tensor_type.ClearField("shape")
    told = inferred(told)

    symbols = {dimension.dim_param for value in model.graph.input for dimension in value.type.tensor_type.shape.dim}
    followed = {v.name: v.type.tensor_type.shape.dim for v in (*told.graph.value_info, *told.graph.output)}
    for value in (*model.graph.value_info, *model.graph.output):
        dimensions, others = value.type.tensor_type.shape.dim, followed.get(value.name, ())
        if len(dimensions) == len(others):
            for dimension, other in zip(dimensions, others, strict=True):
                follows = other.HasField("dim_value") or other.dim_param in symbols - {""}
                if dimension.HasField("dim_value") and follows:
                    dimension.CopyFrom(other)


def without_large_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Copy a model with large weights as inputs, so that checking it and inferring its types takes no memory."""
    light = onnx.ModelProto()
    copy_fields(model, light, skipped={"graph"})
    copy_fields(model.graph, light.graph, skipped={"initializer"})
    declared = {i.name for i in model.graph.input}
    for tensor in model.graph.initializer:
        if is_small(tensor):
            light.graph.initializer.add().CopyFrom(tensor)
        elif tensor.name not in declared:
            info = light.graph.input.add()
            info.CopyFrom(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    return light


def is_small(tensor: onnx.TensorProto) -> bool:
    """Return True if shape inference is to see the values of this weight."""
    return prod(tensor.dims) <= _MOST_ELEMENTS and not is_outside(tensor)
