"""Models around graphs that were built here and not imported: one side of a rule, a fragment to be timed."""

from __future__ import annotations

from dataclasses import replace

import onnx

from rlflow.errors import GraphError
from rlflow.ir.graph import Graph
from rlflow.onnx_io.element_type import to_value_info
from rlflow.onnx_io.exporter import to_onnx


def standalone_model(graph: Graph) -> onnx.ModelProto:
    """Export a graph as a model of IR version 10 with the opsets and functions of its header.

    Raises `GraphError` if an input or output has no known type.
    """
    model = onnx.ModelProto(ir_version=10)
    model.graph.name = "standalone"
    origin = graph.header.proto
    if isinstance(origin, onnx.ModelProto):
        model.opset_import.MergeFrom(origin.opset_import)
        model.functions.MergeFrom(origin.functions)
    else:
        model.opset_import.add(version=graph.header.opset)
        for domain, version in graph.header.domains.items():
            model.opset_import.add(domain=domain, version=version)

    for identifier in graph.inputs:
        node = graph.nodes[identifier]
        model.graph.input.append(_value_info(graph, node.names[0], identifier, 0))
    for ref, name in zip(graph.outputs, graph.output_names, strict=True):
        model.graph.output.append(_value_info(graph, name, *ref))
    return to_onnx(replace(graph, header=replace(graph.header, proto=model)))


def _value_info(graph: Graph, name: str, identifier: int, index: int) -> onnx.ValueInfoProto:
    tensor_type = graph.nodes[identifier].types[index]
    if tensor_type is None:
        raise GraphError(f"value {name!r} has no known tensor type, so that no model can be made around it")
    return to_value_info(name, tensor_type)
