"""A quantised model in floats again: the same network without the rounding to 8 bits, for a comparison of speeds.

    x -> QuantizeLinear -> DequantizeLinear -> Conv(., DequantizeLinear(weights))      becomes      x -> Conv(., floats)

What lies between the two operators, such as a pool of whole numbers, stays as it is, with them.

Invariant: the model has the same inputs and outputs, and no operator of it computes more than before.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper
from onnx.reference import ReferenceEvaluator

from rlflow.onnx_io.node_proto import captured_names
from rlflow.onnx_io.subgraphs import rename_values


def dequantised(model: ModelProto) -> ModelProto | None:
    """Return the model in floats, weights in memory; None if nothing in it is quantised by QuantizeLinear's pairs."""
    result = ModelProto()
    result.CopyFrom(model)
    graph = result.graph
    constants = {tensor.name: tensor for tensor in graph.initializer}
    quantised = {node.output[0]: node for node in graph.node if node.op_type == "QuantizeLinear"}
    outputs = {value.name for value in graph.output}
    read_as, kept = dict[str, str](), list[NodeProto]()
    for node in graph.node:
        if node.op_type != "DequantizeLinear" or node.output[0] in outputs:
            kept.append(node)
        elif (before := quantised.get(node.input[0])) is not None and node.input[1:] == before.input[1:]:
            read_as[node.output[0]] = before.input[0]
        elif all(name in constants for name in node.input):
            graph.initializer.append(_floats(node, constants))
        else:
            kept.append(node)
    if len(kept) == len(graph.node):
        return None
    del graph.node[:]
    graph.node.extend(kept)
    rename_values(graph, {name: _first(name, read_as) for name in read_as})
    _drop_unread(result)
    return result


def _floats(node: NodeProto, constants: Mapping[str, TensorProto]) -> TensorProto:
    """The weights that the node makes of constants, under the name of its output."""
    given = dict(zip(node.input, (numpy_helper.to_array(constants[name]) for name in node.input), strict=True))
    (made,) = ReferenceEvaluator(node).run(None, given)
    return numpy_helper.from_array(np.asarray(made), node.output[0])


def _first(name: str, read_as: Mapping[str, str]) -> str:
    while name in read_as:
        name = read_as[name]
    return name


def _drop_unread(model: ModelProto) -> None:
    """Remove the rounding and the constants that nobody reads any more, and types of values that are gone."""
    graph, read = model.graph, _read(model)
    used = [node for node in graph.node if node.op_type != "QuantizeLinear" or node.output[0] in read]
    del graph.node[:]
    graph.node.extend(used)
    read = _read(model)
    weights = [tensor for tensor in graph.initializer if tensor.name in read]
    del graph.initializer[:]
    graph.initializer.extend(weights)
    del graph.value_info[:]


def _read(model: ModelProto) -> set[str]:
    by_nodes = (name for node in model.graph.node for name in (*node.input, *captured_names(node)))
    return {*by_nodes, *(value.name for value in model.graph.output)}
