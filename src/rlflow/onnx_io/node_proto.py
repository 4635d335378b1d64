"""The parts of an ONNX node, as the importer reads them one by one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import helper, numpy_helper

from rlflow.ir.node import AttributeValue

ONNX_DOMAINS = ("", "ai.onnx")


def remarks_of(proto: onnx.NodeProto) -> onnx.NodeProto | None:
    """Return what the node says of itself that nobody computes with."""
    if not proto.doc_string and not proto.metadata_props:
        return None
    remarks = onnx.NodeProto()
    remarks.CopyFrom(proto)  # whole, as a text that is not UTF-8 cannot be assigned
    for field in {f.name for f, _ in proto.ListFields()} - {"doc_string", "metadata_props"}:
        remarks.ClearField(field)
    return remarks


def qualified_name(proto: onnx.NodeProto) -> str:
    """Return the operator's name as it is called here: with the domain in front, but for ai.onnx."""
    domain = "" if proto.domain in ONNX_DOMAINS else f"{proto.domain}."
    return f"{domain}{proto.op_type}"


def attribute_value(proto: onnx.AttributeProto) -> AttributeValue | None:
    """Return the value of an attribute.

    None for what no known operator has: tensors, graphs, references to a function's attributes.
    """
    if proto.ref_attr_name:
        return None
    value = helper.get_attribute_value(proto)
    match proto.type:
        case onnx.AttributeProto.FLOAT | onnx.AttributeProto.INT:
            return value
        case onnx.AttributeProto.STRING:
            return value.decode()
        case onnx.AttributeProto.INTS | onnx.AttributeProto.FLOATS:
            return tuple(value)
    return None


def constant_tensor(proto: onnx.NodeProto) -> onnx.TensorProto | None:
    """Return what a Constant node holds, named as its output; None where that is no tensor of numbers."""
    attribute = next(iter(proto.attribute), None)
    if attribute is None or attribute.ref_attr_name:
        return None
    match attribute.name:
        case "value":
            tensor = onnx.TensorProto()
            tensor.CopyFrom(attribute.t)
        case "value_float":
            tensor = numpy_helper.from_array(np.array(attribute.f, dtype=np.float32))
        case "value_int":
            tensor = numpy_helper.from_array(np.array(attribute.i, dtype=np.int64))
        case "value_floats":
            tensor = numpy_helper.from_array(np.array(attribute.floats, dtype=np.float32))
        case "value_ints":
            tensor = numpy_helper.from_array(np.array(attribute.ints, dtype=np.int64))
        case _:
            return None
    tensor.name = proto.output[0]
    return tensor


def sparse_constant(proto: onnx.NodeProto) -> onnx.SparseTensorProto | None:
    """Return the sparse tensor that a Constant node holds; None where it holds anything else."""
    attribute = next(iter(proto.attribute), None)
    if attribute is None or attribute.name != "sparse_value" or attribute.ref_attr_name:
        return None
    return attribute.sparse_tensor


def captured_names(proto: onnx.NodeProto) -> Iterator[str]:
    """Names that the node's subgraphs read and do not define themselves."""
    for attribute in proto.attribute:
        for graph in (attribute.g, *attribute.graphs):
            yield from free_names(graph)


def free_names(graph: onnx.GraphProto) -> Iterator[str]:
    """Names that a subgraph takes from outside, in the order of their first use."""
    defined = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    defined |= {t.values.name for t in graph.sparse_initializer}
    for node in graph.node:
        for name in (*node.input, *captured_names(node)):
            if name and name not in defined:
                yield name
        defined.update(node.output)
    for output in graph.output:
        if output.name not in defined:
            yield output.name
