"""Types of a model's values, as ONNX infers them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import onnx
from onnx import helper

from rlflow.ir.tensor_type import TensorType
from rlflow.onnx_io.element_type import dtype_name, from_type_proto, to_value_info
from rlflow.onnx_io.payload import copy_fields

_SMALL_BYTES = 4096  # shapes, axes, indices: what shape inference may want to read
_LONGEST_SHAPE = 2**20
"""ONNX's inference counts up to the length of a vector that may hold axes: of one declared longer, memory runs out."""


def infer_types(model: onnx.ModelProto, dimensions: Mapping[str, int] | None = None) -> dict[str, TensorType | None]:
    """Type of every value by its name, None where ONNX's own inference tells none; weights' data are left out.

    Open dimensions named in `dimensions` are these sizes.
    """
    light = without_large_weights(model)
    pin_dimensions(light.graph, dimensions or {})
    _name_dimensions(light)
    with suppress(RuntimeError, ValueError, MemoryError, onnx.shape_inference.InferenceError):
        light = onnx.shape_inference.infer_shapes(light, data_prop=True)
    values = (*light.graph.value_info, *light.graph.input, *light.graph.output)
    types = {v.name: from_type_proto(v.type) for v in values}
    for sparse in model.graph.sparse_initializer:
        types[sparse.values.name] = TensorType(dtype_name(sparse.values.data_type), tuple(sparse.dims))
    return types


def infer_node_types(
    proto: onnx.NodeProto,
    model: onnx.ModelProto,
    types: Mapping[str, TensorType],
    constants: Mapping[str, onnx.TensorProto],
) -> dict[str, TensorType | None]:
    """Types of a node's outputs by name, from those of its operands and from the operands that are constants; empty
    where ONNX tells none.
    """
    versions = {o.domain: o.version for o in model.opset_import}
    refusals = (onnx.defs.SchemaError, onnx.checker.ValidationError, onnx.shape_inference.InferenceError)
    try:
        schema = onnx.defs.get_schema(proto.op_type, versions.get(proto.domain, 0), proto.domain)
        inferred = onnx.shape_inference.infer_node_outputs(
            schema,
            proto,
            {name: to_value_info(name, kind).type for name, kind in types.items()},
            dict(constants),
            opset_imports=list(model.opset_import),
            ir_version=model.ir_version,
        )
    except (*refusals, RuntimeError, ValueError, TypeError, MemoryError):
        return {}
    return {name: from_type_proto(kind) for name, kind in inferred.items()}


def pin_dimensions(graph: onnx.GraphProto, dimensions: Mapping[str, int]) -> None:
    """Declare these sizes wherever inputs, outputs and values of the graph have the dimensions of these names."""
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.WhichOneof("value") == "tensor_type":
            for name, dimension in zip(dimension_names(value), value.type.tensor_type.shape.dim, strict=True):
                if name in dimensions:
                    dimension.dim_value = dimensions[name]


def dimension_names(value: onnx.ValueInfoProto) -> list[str]:
    """What the dimensions of a tensor are called: by their symbol; where they are open without one, by their place, as
    in x[0]; and "" where they are numbers.
    """
    return [
        "" if dimension.HasField("dim_value") else dimension.dim_param or f"{value.name}[{place}]"
        for place, dimension in enumerate(value.type.tensor_type.shape.dim)
    ]


def _name_dimensions(model: onnx.ModelProto) -> None:
    """Give each unnamed dimension of an input a symbol of its own, so that it can be recognised downstream, and the
    length of a vector, too, that is too long to be a list of axes.
    """
    number = 0
    for value in (*model.graph.input, *model.graph.value_info):
        if value.type.WhichOneof("value") != "tensor_type":
            continue
        dimensions = value.type.tensor_type.shape.dim
        for dimension in dimensions:
            unnamed = dimension.WhichOneof("value") is None
            if unnamed or (len(dimensions) == 1 and dimension.dim_value > _LONGEST_SHAPE):
                dimension.dim_param = f"#{number}"
                number += 1


def without_large_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which large weights are inputs, so that checking it and inferring its types takes no memory."""
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
    """Whether inference is shown the weight's values."""
    return tensor.ByteSize() <= _SMALL_BYTES and tensor.data_location != onnx.TensorProto.EXTERNAL
