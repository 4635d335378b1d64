"""The declarations of a model beside its computation: inputs, outputs and types, opsets, functions, metadata."""

from __future__ import annotations

import onnx

from rlflow.onnx_io.external_data import copy_fields
from rlflow.onnx_io.payload import InitializerPayload
from rlflow.onnx_io.shapes.inference import declares_weights


def interface_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs that a caller may feed."""
    if not declares_weights(model):
        return list(model.graph.input)
    weights = {t.name for t in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in weights]


def without_computation(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of everything but the computation; defaults of inputs stay."""
    stripped = onnx.ModelProto()
    copy_fields(model, stripped, skipped={"graph"})
    computation = {"node", "input", "initializer", "sparse_initializer"}
    copy_fields(model.graph, stripped.graph, skipped=computation)
    stripped.graph.input.extend(interface_inputs(model))
    overridable = {i.name for i in stripped.graph.input}
    for tensor in model.graph.initializer:
        if tensor.name in overridable:
            stripped.graph.initializer.add().CopyFrom(InitializerPayload(tensor).self_contained())
    return stripped
