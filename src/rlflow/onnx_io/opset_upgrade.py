"""The upgrade of a graph to a newer opset of ai.onnx than its model has.

Nodes that the library understands are written by the exporter as each opset wants them. Nodes that it carries verbatim
must mean the same in both opsets: onnx's own version converter is given each of them alone, and must leave it as it is.
So no weight is copied, and nothing is converted that could be converted wrongly.
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


def upgraded(graph: Graph, opset: int) -> Graph | None:
    """Return the graph for `opset`, which is later than its own; None, with a debug message, if that is not safe.

    It is not safe if a node that is carried verbatim may mean something else there, or the model defines functions.
    """
    header = graph.header.proto
    assert isinstance(header, onnx.ModelProto)
    if reason := _obstacle(graph, header, opset):
        _LOGGER.debug("the model is not upgraded from opset %d to %d: %s", graph.header.opset, opset, reason)
        return None

    proto = onnx.ModelProto()
    proto.CopyFrom(header)
    for domain in proto.opset_import:
        if domain.domain in ONNX_DOMAINS:
            domain.version = opset
    return replace(graph, header=replace(graph.header, opset=opset, proto=proto), edit=None)


def _obstacle(graph: Graph, header: onnx.ModelProto, opset: int) -> str:
    """Return the reason why the graph cannot be upgraded to this opset, or ""."""
    if not graph.header.opset:
        return "it does not import ai.onnx"
    if header.functions:
        return "it defines functions"
    for carried in graph.nodes.values():
        if isinstance(carried.payload, OpaquePayload):
            for node in _with_inner(carried.payload.proto):
                if node.domain in ONNX_DOMAINS and not _keeps_meaning(_bare(node), graph.header.opset, opset):
                    return f"{node.op_type} {node.name!r} may mean something else there"
    return ""


def _with_inner(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    """Yield the node and all nodes of its subgraphs."""
    yield node
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from _with_inner(inner)


def _bare(node: onnx.NodeProto) -> bytes:
    """Serialise a node without names and without the nodes of its subgraphs, which do not bear on its own meaning."""
    bare = onnx.NodeProto(op_type=node.op_type)
    bare.input.extend(name and f"i{place}" for place, name in enumerate(node.input))
    bare.output.extend(name and f"o{place}" for place, name in enumerate(node.output))
    for attribute in node.attribute:
        # Nodes of subgraphs are asked about one by one.
        if attribute.type == onnx.AttributeProto.GRAPH:
            bare.attribute.append(helper.make_attribute(attribute.name, onnx.GraphProto(name="inner")))
        else:
            bare.attribute.add().CopyFrom(attribute)
    return bare.SerializeToString(deterministic=True)


@lru_cache(_MOST_REMEMBERED)
def _keeps_meaning(serialised: bytes, before: int, after: int) -> bool:
    """Return True if onnx's version converter converts this node, alone, to itself."""
    node = onnx.NodeProto.FromString(serialised)
    # The converter reads the types of values, and crashes without them; no later opset removes types from an operator.
    inputs, outputs = (
        [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in names if n]
        for names in (node.input, node.output)
    )
    model = helper.make_model(
        helper.make_graph([node], "alone", inputs, outputs), opset_imports=[helper.make_opsetid("", before)]
    )
    try:
        converted = version_converter.convert_version(model, after)
    except (RuntimeError, ValueError, version_converter.ConvertError):  # sparse tensors raise the last
        return False
    return [n.SerializeToString(deterministic=True) for n in converted.graph.node] == [serialised]
