"""Models with subnormal weights, the first of them after public threads about models that became slow by training.

decayed((9, 9))             weights of which every third row has decayed to 1e-39
HARMLESS["LSTM"]()          a model whose outputs do not depend on such rows
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import ModelProto, TensorProto, helper, numpy_helper

from support.small_models import FLOAT, build_model

DECAY = 1e-38
"""Float32 has normal numbers down to 1.2e-38."""
RNG = np.random.default_rng


def decayed(shape: tuple[int, ...], seed: int = 0, decay: float = DECAY, dtype: type = np.float32) -> np.ndarray:
    """Standard normal weights over 10, of which every third along the first axis is `decay` times as large."""
    weights = RNG(seed).standard_normal(shape) / 10
    weights[::3] *= decay
    return weights.astype(dtype)


def every_third(size: int, factor: float) -> np.ndarray:
    """Ones, and `factor` where weights have decayed."""
    factors = np.ones(size, np.float32)
    factors[::3] = factor
    return factors


def convolutions(decay: float = DECAY) -> ModelProto:
    """After onnxruntime#7448, #15630: filters that weight decay has left, in an image network."""
    nodes, weights, value = [], {}, "x"
    for layer in range(3):
        weights |= {f"w{layer}": decayed((9, 9, 3, 3), layer, decay), f"b{layer}": decayed((9,), layer, decay)}
        nodes.append(helper.make_node("Conv", [value, f"w{layer}", f"b{layer}"], [f"c{layer}"], pads=[1] * 4))
        nodes.append(helper.make_node("Relu", [f"c{layer}"], [f"r{layer}"]))
        value = f"r{layer}"
    image = [1, 9, 12, 12]
    return build_model(nodes, [("x", FLOAT, image)], [(value, FLOAT, image)], weights)


def recurrent(operator: str, gates: int) -> ModelProto:
    """After oneDNN#561: gates of an LSTM or a GRU."""
    hidden, size, steps = 6, 4, 5
    weights = {
        "w": decayed((gates * hidden, size))[None],
        "r": decayed((gates * hidden, hidden), 1)[None],
        "b": decayed((2 * gates * hidden,), 2)[None],
    }
    node = helper.make_node(operator, ["x", "w", "r", "b"], ["y"], hidden_size=hidden)
    return build_model([node], [("x", FLOAT, [steps, 1, size])], [("y", FLOAT, [steps, 1, 1, hidden])], weights)


def block() -> ModelProto:
    """A block of a transformer, with a norm of tiny scale and weights that are transposed on their way."""
    width, inner = 12, 24
    nodes = [
        helper.make_node("LayerNormalization", ["x", "scale", "shift"], ["n"]),
        helper.make_node("Transpose", ["w_in"], ["w"], perm=[1, 0]),
        helper.make_node("MatMul", ["n", "w"], ["h"]),
        helper.make_node("Add", ["h", "b_in"], ["hb"]),
        helper.make_node("Relu", ["hb"], ["a"]),
        helper.make_node("Gemm", ["a", "w_out", "b_out"], ["o"], transB=1),
        helper.make_node("Add", ["o", "x"], ["y"]),
    ]
    weights = {
        "scale": decayed((width,)),
        "shift": decayed((width,), 1),
        "w_in": decayed((inner, width), 2),
        "b_in": decayed((inner,), 3),
        "w_out": decayed((width, inner), 4),
        "b_out": decayed((width,), 5),
    }
    return build_model(nodes, [("x", FLOAT, [5, width])], [("y", FLOAT, [5, width])], weights)


def batch_normalised(scale: float = 1e-20) -> ModelProto:
    """After onnxruntime#6865, #12959: filters and a scale of 1e-20 each, of which ONNX Runtime makes one weight."""
    weights = {
        "w": decayed((9, 3, 3, 3), decay=1e-20),
        "scale": every_third(9, scale),
        "shift": RNG(1).standard_normal(9).astype(np.float32),
        "mean": np.zeros(9, np.float32),
        "variance": np.ones(9, np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["y"]),
    ]
    return build_model(nodes, [("x", FLOAT, [1, 3, 8, 8])], [("y", FLOAT, [1, 9, 6, 6])], weights)


def of_type(dtype: type, decay: float, *, cast: bool = False) -> ModelProto:
    """A product by weights of another float type, which are cast to float32 first if that is asked for."""
    weights, element = decayed((8, 8), decay=decay, dtype=dtype), helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    nodes = [helper.make_node("MatMul", ["x", "v" if cast else "w"], ["y"])]
    if cast:
        nodes.insert(0, helper.make_node("Cast", ["w"], ["v"], to=FLOAT))
    data = FLOAT if cast else element
    return build_model(nodes, [("x", data, [4, 8])], [("y", data, [4, 8])], {"w": weights})


def constants() -> ModelProto:
    """Weights in Constants, dense, as a list of floats, and sparse."""
    dense, floats = decayed((8, 8)), decayed((8,), 1)
    stored = decayed((8,), 2)
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(stored, "values"),
        numpy_helper.from_array(np.arange(0, 64, 8), "indices"),
        [8, 8],
    )
    nodes = [
        helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(dense, "")),
        helper.make_node("Constant", [], ["b"], value_floats=floats.tolist()),
        helper.make_node("Constant", [], ["s"], sparse_value=sparse),
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["q"]),
        helper.make_node("MatMul", ["q", "s"], ["y"]),
    ]
    return build_model(nodes, [("x", FLOAT, [4, 8])], [("y", FLOAT, [4, 8])])


def loop() -> ModelProto:
    """A Loop of three rounds, whose body multiplies by a weight of its own and by one of the main graph."""
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [
            helper.make_node("Constant", [], ["inner"], value=numpy_helper.from_array(decayed((8, 8), 1), "")),
            helper.make_node("MatMul", ["h", "inner"], ["p"]),
            helper.make_node("MatMul", ["p", "outer"], ["q"]),
            helper.make_node("Tanh", ["q"], ["h_out"]),
            helper.make_node("Identity", ["go"], ["go_out"]),
        ],
        "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("h", FLOAT, [4, 8])],
        [value("go_out", TensorProto.BOOL, []), value("h_out", FLOAT, [4, 8])],
    )
    node = helper.make_node("Loop", ["rounds", "true", "x"], ["y"], body=body)
    weights = {"rounds": np.array(3), "true": np.array(True), "outer": decayed((8, 8), 2)}
    return build_model([node], [("x", FLOAT, [4, 8])], [("y", FLOAT, [4, 8])], weights)


def amplified(factor: float) -> ModelProto:
    """A product of which every third column, whose weights have decayed, is multiplied by a constant afterwards."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Mul", ["p", "factor"], ["y"])]
    weights = {"w": np.ascontiguousarray(decayed((9, 9)).T), "factor": every_third(9, factor)}
    return build_model(nodes, [("x", FLOAT, [4, 9])], [("y", FLOAT, [4, 9])], weights)


def branches() -> ModelProto:
    """An If whose second branch alone makes something of its subnormal weights; drawn numbers never lead there."""
    value = helper.make_tensor_value_info
    weights = numpy_helper.from_array(np.ascontiguousarray(decayed((8, 8)).T), "")
    huge = numpy_helper.from_array(every_third(8, 1e38), "")
    usual = helper.make_graph(
        [
            helper.make_node("Constant", [], ["w"], value=weights),
            helper.make_node("MatMul", ["x", "w"], ["usual"]),
        ],
        "usual",
        [],
        [value("usual", FLOAT, [4, 8])],
    )
    rare = helper.make_graph(
        [
            helper.make_node("Constant", [], ["v"], value=weights),
            helper.make_node("Constant", [], ["huge"], value=huge),
            helper.make_node("MatMul", ["x", "v"], ["p"]),
            helper.make_node("Mul", ["p", "huge"], ["rare"]),
        ],
        "rare",
        [],
        [value("rare", FLOAT, [4, 8])],
    )
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["largest"], keepdims=0),
        helper.make_node("Less", ["largest", "far"], ["is_usual"]),
        helper.make_node("If", ["is_usual"], ["y"], then_branch=usual, else_branch=rare),
    ]
    far = {"far": np.array(1e6, np.float32)}
    return build_model(nodes, [("x", FLOAT, [4, 8])], [("y", FLOAT, [4, 8])], far)


def guarded() -> ModelProto:
    """A logarithm that an epsilon keeps from its pole: subnormal, and needed where an input is zero."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Add", ["r", "epsilon"], ["s"]),
        helper.make_node("Log", ["s"], ["y"]),
    ]
    return build_model(
        nodes, [("x", FLOAT, [4, 8])], [("y", FLOAT, [4, 8])], {"epsilon": np.full(8, 1e-45, np.float32)}
    )


HARMLESS: Mapping[str, Callable[[], ModelProto]] = {
    "convolutions": convolutions,
    "LSTM": lambda: recurrent("LSTM", 4),
    "GRU": lambda: recurrent("GRU", 3),
    "transformer block": block,
    "batch norm": batch_normalised,
    "constants": constants,
    "loop": loop,
    "float64": lambda: of_type(np.float64, 1e-308),
    "bfloat16 cast to float32": lambda: of_type(ml_dtypes.bfloat16, 1e-38, cast=True),
    "float64 cast to float32": lambda: of_type(np.float64, 1e-38, cast=True),
}
"""Models by a name, all of whose subnormal weights may go."""


def with_data_outside(model: ModelProto, path: Path) -> Path:
    """Write a model with its weights in another file, and return its own."""
    onnx.save(model, path, save_as_external_data=True, location=f"{path.name}.data", size_threshold=0)
    return path
