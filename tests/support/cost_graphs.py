"""Graphs whose work can be counted by hand, written as one line an operator."""

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from rlflow import zoo
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx

Shape = tuple[int, ...]
SMALL_BERT = {
    "hidden": 32,
    "heads": 2,
    "intermediate": 64,
    "sequence": 8,
    "vocabulary": 50,
    "positions": 16,
}


def graph(
    nodes: list[tuple],
    inputs: dict[str, Shape],
    outputs: dict[str, Shape],
    weights: dict[str, np.ndarray] | None = None,
) -> Graph:
    """`nodes` are (operator, operands, results) and optionally attributes; names separated by spaces; all float32."""
    made = [
        helper.make_node(op, operands.split(), results.split(), **(rest[0] if rest else {}))
        for op, operands, results, *rest in nodes
    ]
    values = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in group.items()]
        for group in (inputs, outputs)
    ]
    initialisers = [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()]
    model = helper.make_model(
        helper.make_graph(made, "test", *values, initializer=initialisers),
        ir_version=10,
        opset_imports=[helper.make_opsetid("", 17)],
    )
    return from_onnx(model)


def weight(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


def gelu_between_products() -> Graph:
    """A Gelu in pieces, whose last factor is 0.5, between two products with weights."""
    half, one, root = (np.array(v, np.float32) for v in (0.5, 1.0, 2**0.5))
    nodes = [
        ("MatMul", "x w", "u"),
        ("Div", "u root", "d"),
        ("Erf", "d", "e"),
        ("Add", "e one", "f"),
        ("Mul", "u f", "p"),
        ("Mul", "p half", "q"),
        ("MatMul", "q v", "y"),
    ]
    weights = {"w": weight(4, 6), "v": weight(6, 4), "half": half, "one": one, "root": root}
    return graph(nodes, {"x": (3, 4)}, {"y": (3, 4)}, weights)


def layer_scaled(layers: int) -> Graph:
    """x <- x + scale * MLP(x), as ConvNeXt and DINOv2 have it: a factor for each column."""
    weights = {name: weight(*shape, seed=seed) for seed, (name, shape) in enumerate(_LAYER.items())}
    nodes: list[tuple] = []
    stream = "x"
    for layer in range(layers):
        a, b, r, c, d, s, y = (f"{letter}{layer}" for letter in "abrcdsy")
        nodes += [
            ("MatMul", f"{stream} w", a),
            ("Add", f"{a} b", b),
            ("Relu", b, r),
            ("MatMul", f"{r} v", c),
            ("Add", f"{c} d", d),
            ("Mul", f"{d} scale", s),
            ("Add", f"{stream} {s}", y),
        ]
        stream = y
    return graph(nodes, {"x": (1, 4, 8)}, {stream: (1, 4, 8)}, weights)


_LAYER: dict[str, Shape] = {"w": (8, 16), "b": (16,), "v": (16, 8), "d": (8,), "scale": (8,)}

F32 = 4
M, K, N = 3, 5, 7


SMALL_ZOO = {
    "bert": {"layers": 1, "vocabulary": 100, "hidden": 64, "heads": 4, "intermediate": 128, "sequence": 16},
    "gpt2": {"layers": 1, "vocabulary": 100, "hidden": 64, "heads": 4, "intermediate": 128, "sequence": 16},
    "t5_decoder": {"layers": 1, "vocabulary": 100, "hidden": 64, "heads": 4, "intermediate": 128, "sequence": 8},
    "vit": {"layers": 1, "hidden": 64, "heads": 4, "intermediate": 128, "image": 64},
    "nasrnn": {"steps": 2, "hidden": 64},
    "nasnet_a": {"cells": 1, "image": 64},
    "resnet18": {"image": 64, "width": 16},
    "mobilenet_v3": {"image": 64},
    "yolo_v5": {"image": 64},
    "squeezenet1_1": {"image": 64},
    "mlp": {},
    "tiny_chain": {},
}


def small_graph(name: str) -> Graph:
    return from_onnx(zoo.build(name, **SMALL_ZOO[name]))
