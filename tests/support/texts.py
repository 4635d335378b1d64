"""Models written in ONNX's own text."""

import numpy as np
from onnx import ModelProto, numpy_helper

from support.onnx_models import with_drawn_weights

LAYERS = """
    <ir_version: 8, opset_import: ["" : 17]>
    layers (bool c, float[64, 128] x) => (float[64, 128] y)
    <float[128, 128] w, float[128, 128] v> {
        y = If (c) <
            then_branch = then () => (float[64, 128] t) { t1 = MatMul(x, w)  t = MatMul(t1, v) },
            else_branch = else () => (float[64, 128] e) { e1 = MatMul(x, v)  e2 = MatMul(e1, w)  e = Relu(e2) }
        >
    }
"""
"""All of the model is in the branches, which capture its weights: x w v = x (w v)."""


def filled(text: str) -> ModelProto:
    """With weights that neither enlarge what they multiply nor make it small."""
    model = with_drawn_weights(text)
    for tensor in model.graph.initializer:
        if len(tensor.dims) == 2:
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor) / np.float32(12), tensor.name))
    return model


SUMMED = """
    <ir_version: 8, opset_import: ["" : 17]>
    summed (float[n, 64] x, float[m, 64] z) => (float[rows, 64] y)
    <float[64, 64] w> {
        a = MatMul(x, w)
        b = MatMul(z, w)
        y = Add(a, b)
    }
"""
"""x w + z w = (x + z) w saves a product; with one row in x and many in z, it is another sum."""
