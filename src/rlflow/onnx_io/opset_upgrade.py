"""The upgrade of a graph to a newer opset of ai.onnx than its model has.

Nodes that the library understands are written by the exporter as each opset wants them. Nodes that it carries verbatim,
with those of their subgraphs and of the model's functions, must mean the same in both opsets: each is looked up in a
table of the changes of all operators (`opset_changes.py`). So no weight is copied, and nothing is converted.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import onnx

from rlflow.ir.graph import Graph
from rlflow.ir.tensor_type import TensorType
from rlflow.onnx_io.node_proto import ONNX_DOMAINS
from rlflow.onnx_io.opset_changes import keeps_meaning
from rlflow.onnx_io.payload import OpaquePayload

_LOGGER = logging.getLogger(__name__)

_Use = tuple[onnx.NodeProto, Sequence[TensorType | None], int]
"""A node with the types of its inputs, as far as they are known, and the opset that it is written for."""


def upgraded(graph: Graph, opset: int) -> Graph | None:
    """Return the graph for `opset`, which is later than its own; None, with a debug message, if that is not safe.

    It is not safe if a node that is carried verbatim may mean something else there.
    """
    header = graph.header.proto
    assert isinstance(header, onnx.ModelProto)
    if reason := _obstacle(graph, header, opset):
        _LOGGER.debug("the model is not upgraded from opset %d to %d: %s", graph.header.opset, opset, reason)
        return None

    proto = onnx.ModelProto()
    proto.CopyFrom(header)
    for holder in (proto, *proto.functions):
        for domain in holder.opset_import:
            if domain.domain in ONNX_DOMAINS:
                domain.version = opset
    return replace(graph, header=replace(graph.header, opset=opset, proto=proto), edit=None)


def _obstacle(graph: Graph, header: onnx.ModelProto, opset: int) -> str:
    """Return the reason why the graph cannot be upgraded to this opset, or ""."""
    if not graph.header.opset:
        return "it does not import ai.onnx"
    own = {(function.domain, function.name) for function in header.functions}
    for node, types, before in (*_carried(graph), *_in_functions(header.functions)):
        is_of_onnx = node.domain in ONNX_DOMAINS and (node.domain, node.op_type) not in own
        if is_of_onnx and (before > opset or not keeps_meaning(node, types, before, opset)):
            return f"{node.op_type} {node.name!r} may mean something else there"
    return ""


def _carried(graph: Graph) -> Iterator[_Use]:
    """Yield the nodes that the graph carries verbatim, and those of their subgraphs."""
    for carried in graph.nodes.values():
        if isinstance(carried.payload, OpaquePayload):
            types = [None if ref is None else graph.type_of(ref) for ref in carried.inputs]
            node, *inner = _with_inner(carried.payload.proto)
            yield node, types, graph.header.opset
            yield from ((node, (), graph.header.opset) for node in inner)


def _in_functions(functions: Iterable[onnx.FunctionProto]) -> Iterator[_Use]:
    for function in functions:
        opset = next((o.version for o in function.opset_import if o.domain in ONNX_DOMAINS), 0)
        for node in function.node:
            yield from ((inner, (), opset) for inner in _with_inner(node))


def _with_inner(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """Yield the node and all nodes of its subgraphs."""
    yield node
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from _with_inner(inner)
