"""Models drawn by hypothesis: drawn graphs with what no rule looks into among their nodes, and with a dynamic batch."""

from collections.abc import Callable
from typing import NamedTuple

import onnx
from hypothesis import strategies as st
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, helper

from rlflow.onnx_io.standalone import standalone_model
from support.strategies import graphs


class DrawnModel(NamedTuple):
    """A model, and the sizes at which its dynamic dimensions fit."""

    model: ModelProto
    dimensions: dict[str, int]


@st.composite
def models(draw: st.DrawFn, least_nodes: int = 4, max_nodes: int = 14) -> DrawnModel:
    """A drawn graph as a model; one of its nodes may be there again with its operands the other way round, one of its
    values may be read through a detour, and its batch may be dynamic.
    """
    model = standalone_model(draw(graphs(max_nodes, opset=21, least_nodes=least_nodes)))
    turnable = [node for node in model.graph.node if node.op_type in ("Add", "Mul", "Sub")]
    if turnable:
        _turn(model, draw(st.sampled_from(turnable)))
    detour = draw(st.sampled_from([None, *DETOURS]))
    if detour is not None:
        value = draw(st.sampled_from([*model.graph.input, *_computed(model)]))
        _lead(model, value.name, DETOURS[detour](model.graph, value))
    batch = model.graph.input[0].type.tensor_type.shape.dim[0]
    dimensions = {"batch": batch.dim_value} if draw(st.booleans()) else {}
    if dimensions:
        batch.dim_param = "batch"
        for dimension in (d for value in model.graph.output for d in value.type.tensor_type.shape.dim):
            dimension.Clear()
    return DrawnModel(onnx.shape_inference.infer_shapes(model), dimensions)


def _computed(model: ModelProto) -> list[onnx.ValueInfoProto]:
    """The values between inputs and outputs."""
    return list(onnx.shape_inference.infer_shapes(model).graph.value_info)


def _turn(model: ModelProto, node: NodeProto) -> None:
    """Add a node of two operands once more, with these in the other order: the same to one who is careless."""
    model.graph.node.append(helper.make_node(node.op_type, node.input[::-1], ["turned"]))
    (kind,) = (v.type for v in (*_computed(model), *model.graph.output) if v.name == node.output[0])
    model.graph.output.append(onnx.ValueInfoProto(name="turned", type=kind))


def _lead(model: ModelProto, value: str, detour: list[NodeProto]) -> None:
    """Let the nodes that read a value read the last output of these nodes instead."""
    nodes = list(model.graph.node)
    made_at = next((place for place, node in enumerate(nodes) if value in node.output), -1)
    for node in nodes:
        node.input[:] = [detour[-1].output[0] if name == value else name for name in node.input]
    del model.graph.node[:]
    model.graph.node.extend([*nodes[: made_at + 1], *detour, *nodes[made_at + 1 :]])


def _sorted(graph: GraphProto, value: onnx.ValueInfoProto) -> list[NodeProto]:
    """An unknown operator, of whose two outputs nobody reads the second; of a scalar there is nothing to sort."""
    shape = [dimension.dim_value for dimension in value.type.tensor_type.shape.dim]
    if not shape:
        return [helper.make_node("Selu", [value.name], ["sorted"])]
    graph.initializer.append(helper.make_tensor("size", TensorProto.INT64, [1], shape[-1:]))
    return [helper.make_node("TopK", [value.name, "size"], ["sorted", "places"])]


def _branches(graph: GraphProto, value: onnx.ValueInfoProto) -> list[NodeProto]:
    """An If of two outputs, both of whose branches capture the value."""
    graph.input.append(helper.make_tensor_value_info("condition", TensorProto.BOOL, []))
    then = [helper.make_node("Relu", [value.name], ["t0"]), helper.make_node("Neg", [value.name], ["t1"])]
    otherwise = [helper.make_node("Tanh", [value.name], ["e0"]), helper.make_node("Add", [value.name] * 2, ["e1"])]
    sides = {"then_branch": _body("then", then, "t0", "t1"), "else_branch": _body("else", otherwise, "e0", "e1")}
    node = helper.make_node("If", ["condition"], ["chosen", "other"], **sides)
    return [node, helper.make_node("Sub", ["chosen", "other"], ["difference"])]


def _repeated(graph: GraphProto, value: onnx.ValueInfoProto) -> list[NodeProto]:
    """A Loop that carries the value and captures it, too."""
    graph.initializer.append(helper.make_tensor("trips", TensorProto.INT64, [], [2]))
    nodes = [
        helper.make_node("Identity", ["go"], ["go_on"]),
        helper.make_node("Add", ["state", value.name], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["next"]),
    ]
    body = _body("body", nodes, "next")
    body.input.extend(
        [
            helper.make_tensor_value_info("trip", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            _of_any_shape("state"),
        ]
    )
    body.output.insert(0, helper.make_tensor_value_info("go_on", TensorProto.BOOL, []))
    return [helper.make_node("Loop", ["trips", "", value.name], ["end"], body=body)]


def _body(name: str, nodes: list[NodeProto], *outputs: str) -> GraphProto:
    return helper.make_graph(nodes, name, [], [_of_any_shape(output) for output in outputs])


def _of_any_shape(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, None)


DETOURS: dict[str, Callable[[GraphProto, onnx.ValueInfoProto], list[NodeProto]]] = {
    "sorted": _sorted,
    "branches": _branches,
    "repeated": _repeated,
}
"""Nodes from a value to another one of its shape, of which no rule knows anything."""
