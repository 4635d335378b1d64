"""A multi-layer perceptron, the plainest model there is."""

from itertools import pairwise
from math import sqrt

from onnx import ModelProto

from rlflow.zoo.builder import Dimension, GraphBuilder

_NOISE = 0.1


def mlp(
    *,
    layers: int = 3,
    batch: Dimension = 8,
    inputs: int = 32,
    hidden: int = 64,
    outputs: int = 10,
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """Multi-layer perceptron: `layers` times MatMul, Add and Relu, the last time without Relu.

    Input x (batch, inputs), batch a number or a symbol; output y (batch, outputs).
    """
    b = GraphBuilder("mlp", seed=seed, opset=opset)
    x = b.input("x", (batch, inputs))
    widths = [inputs, *[hidden] * (layers - 1), outputs]
    for layer, (fan_in, fan_out) in enumerate(pairwise(widths)):
        scope = f"mlp/layer_{layer}"
        weight = b.parameter(f"{scope}/weight", (fan_in, fan_out), std=sqrt(2 / fan_in))
        bias = b.parameter(f"{scope}/bias", (fan_out,), std=_NOISE)
        x = b.node("Add", b.node("MatMul", x, weight, scope=scope), bias, scope=scope)
        if layer < layers - 1:
            x = b.node("Relu", x, scope=scope)
    b.output("y", x, (batch, outputs))
    return b.finish()
