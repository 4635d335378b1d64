"""A recurrent model written with an ONNX Loop whose body captures values of the graph around it."""

from math import sqrt

import numpy as np
from onnx import GraphProto, ModelProto, TensorProto, helper

from rlflow.zoo.builder import GraphBuilder


def loop(*, rows: int = 4, width: int = 16, steps: int = 5, seed: int = 0, opset: int = 17) -> ModelProto:
    """Recurrence in a Loop that captures a weight, a gain and a computed value of the outer graph.

    Input x (rows, width). With drive = x W and state = drive, `steps` times: state = tanh(state R + drive).
    Outputs y = (state A) B (rows, width), and trace (steps, rows, width), each step's state times the gain.
    """
    b = GraphBuilder("loop", seed=seed, opset=opset)
    x = b.input("x", (rows, width))

    def weight(name: str) -> str:
        return b.parameter(f"loop/{name}/weight", (width, width), std=1 / sqrt(width))

    drive = b.node("MatMul", x, weight("drive"), scope="loop/drive")
    gain = b.parameter("loop/gain", (width,), mean=1.0, std=0.1)
    body = _body(rows, width, recurrent=weight("recurrent"), drive=drive, gain=gain)
    trips = b.constant("steps", np.array(steps))
    condition = b.constant("true", np.array(True))
    state, trace = b.multi_output_node("Loop", trips, condition, drive, scope="loop", outputs=2, body=body)
    y = b.node("MatMul", state, weight("expand"), scope="loop/expand")
    y = b.node("MatMul", y, weight("contract"), scope="loop/contract")
    b.output("y", y, (rows, width))
    b.output("trace", trace, (steps, rows, width))
    return b.finish()


def _body(rows: int, width: int, *, recurrent: str, drive: str, gain: str) -> GraphProto:
    """The Loop's body: one step; `recurrent`, `drive` and `gain` are names of the outer graph."""
    nodes = [
        helper.make_node("Identity", ["condition"], ["condition_out"], name="body/Identity"),
        helper.make_node("MatMul", ["state", recurrent], ["projected"], name="body/MatMul"),
        helper.make_node("Add", ["projected", drive], ["driven"], name="body/Add"),
        helper.make_node("Tanh", ["driven"], ["state_out"], name="body/Tanh"),
        helper.make_node("Mul", ["state_out", gain], ["trace_out"], name="body/Mul"),
    ]
    inputs = [
        helper.make_tensor_value_info("iteration", TensorProto.INT64, ()),
        helper.make_tensor_value_info("condition", TensorProto.BOOL, ()),
        helper.make_tensor_value_info("state", TensorProto.FLOAT, (rows, width)),
    ]
    outputs = [
        helper.make_tensor_value_info("condition_out", TensorProto.BOOL, ()),
        helper.make_tensor_value_info("state_out", TensorProto.FLOAT, (rows, width)),
        helper.make_tensor_value_info("trace_out", TensorProto.FLOAT, (rows, width)),
    ]
    return helper.make_graph(nodes, "body", inputs, outputs)
