"""The declarations of a model beside its computation: inputs, outputs and types, opsets, functions, metadata."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

import onnx
from onnx import numpy_helper

from rlflow.onnx_io.external_data import copy_fields
from rlflow.onnx_io.node_proto import ONNX_DOMAINS, sparse_constant
from rlflow.onnx_io.payload import InitializerPayload, SparsePayload
from rlflow.onnx_io.shapes.inference import declares_weights

_LARGEST_DENSE = 2**20
"""Elements of a function's sparse constant that is written dense; ONNX Runtime makes all of them dense in memory."""


def interface_inputs(model: onnx.ModelProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs that a caller may feed."""
    if not declares_weights(model):
        return list(model.graph.input)
    weights = {t.name for t in model.graph.initializer}
    return [i for i in model.graph.input if i.name not in weights]


def without_computation(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a copy of everything but the computation; defaults of inputs stay.

    Sparse constants of functions are made dense: ONNX Runtime 1.32 reads freed memory when it inlines a function that
    holds one, and crashes now and then.
    """
    stripped = onnx.ModelProto()
    copy_fields(model, stripped, skipped={"graph"})
    computation = {"node", "input", "initializer", "sparse_initializer"}
    copy_fields(model.graph, stripped.graph, skipped=computation)
    stripped.graph.input.extend(interface_inputs(model))
    overridable = {i.name for i in stripped.graph.input}
    for tensor in model.graph.initializer:
        if tensor.name in overridable:
            stripped.graph.initializer.add().CopyFrom(InitializerPayload(tensor).self_contained())
    for function in stripped.functions:
        _make_dense(function.node)
    return stripped


def _make_dense(nodes: Iterable[onnx.NodeProto]) -> None:
    for node in nodes:
        sparse = sparse_constant(node) if node.domain in ONNX_DOMAINS else None
        if sparse is not None and prod(sparse.dims) <= _LARGEST_DENSE:
            dense = numpy_helper.from_array(SparsePayload(sparse).array())
            node.attribute[0].CopyFrom(onnx.helper.make_attribute("value", dense))
