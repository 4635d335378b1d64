"""A graph for a newer opset of ai.onnx than its model has.

What the library understands, the exporter writes as each opset wants it. What it carries verbatim must mean the same in
both opsets: onnx's own version converter is asked about each such node alone, and must leave it as it is. So no weight
is copied, and nothing is converted that could be converted wrongly.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache

import onnx
from onnx import helper, version_converter

from rlflow.ir.graph import Graph
from rlflow.onnx_io.node_proto import ONNX_DOMAINS
from rlflow.onnx_io.payload import OpaquePayload

_LOGGER = logging.getLogger(__name__)
_MOST_REMEMBERED = 4096


def raised(graph: Graph, opset: int) -> Graph | None:
    """The same nodes for this opset, later than the model's; None, with a line for whoever debugs, where that is not
    safe: where a node that is carried verbatim may mean something else there, or the model defines functions.
    """
    header = graph.header.proto
    assert isinstance(header, onnx.ModelProto)
    if reason := _obstacle(graph, header, opset):
        _LOGGER.debug("the model is not raised from opset %d to %d: %s", graph.header.opset, opset, reason)
        return None
    proto = onnx.ModelProto()
    proto.CopyFrom(header)
    for domain in proto.opset_import:
        if domain.domain in ONNX_DOMAINS:
            domain.version = opset
    return replace(graph, header=replace(graph.header, opset=opset, proto=proto), edit=None)


def _obstacle(graph: Graph, header: onnx.ModelProto, opset: int) -> str:
    """Why the graph cannot be raised to this opset, or ""."""
    if not graph.header.opset:
        return "it does not import ai.onnx"
    if header.functions:
        return "it defines functions"
    for carried in graph.nodes.values():
        if isinstance(carried.payload, OpaquePayload):
            for node in _with_inner(carried.payload.proto):
                if node.domain in ONNX_DOMAINS and not _keeps_meaning(_bare(node), graph.header.opset, opset):
                    return f"{node.op_type} {node.name!r} may not be the same there"
    return ""


def _with_inner(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """The node and those of its subgraphs."""
    yield node
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from _with_inner(inner)


def _bare(node: onnx.NodeProto) -> bytes:
    """The node without what has no bearing on its meaning: names, and what its subgraphs hold."""
    bare = onnx.NodeProto(op_type=node.op_type)
    bare.input.extend(name and f"i{place}" for place, name in enumerate(node.input))
    bare.output.extend(name and f"o{place}" for place, name in enumerate(node.output))
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            bare.attribute.append(helper.make_attribute(attribute.name, onnx.GraphProto(name="inner")))
        else:
            bare.attribute.add().CopyFrom(attribute)
    return bare.SerializeToString(deterministic=True)


@lru_cache(_MOST_REMEMBERED)
def _keeps_meaning(serialised: bytes, before: int, after: int) -> bool:
    """Whether onnx converts this node, alone, to itself."""
    node = onnx.NodeProto.FromString(serialised)
    # The converter reads the types of values, and crashes where there are none; no later opset takes types away.
    inputs, outputs = (
        [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in names if n]
        for names in (node.input, node.output)
    )
    model = helper.make_model(
        helper.make_graph([node], "alone", inputs, outputs), opset_imports=[helper.make_opsetid("", before)]
    )
    try:
        converted = version_converter.convert_version(model, after)
    except (RuntimeError, ValueError):
        return False
    return [n.SerializeToString(deterministic=True) for n in converted.graph.node] == [serialised]
