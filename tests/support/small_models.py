"""Small real models, made node by node."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

Declaration = tuple[str, int, Sequence[int | str | None] | None]
ModelBuilder = Callable[..., ModelProto]


def build_model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[Declaration],
    outputs: Sequence[Declaration],
    weights: Mapping[str, np.ndarray] | None = None,
    opset: int = 17,
) -> ModelProto:
    graph = helper.make_graph(
        list(nodes),
        "test",
        [helper.make_tensor_value_info(*declaration) for declaration in inputs],
        [helper.make_tensor_value_info(*declaration) for declaration in outputs],
        [numpy_helper.from_array(value, name) for name, value in (weights or {}).items()],
    )
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", opset)])


def dense_model(rows: int = 4, width: int = 8, *, scale: float = 1.0, dtype: type = np.float32) -> ModelProto:
    """A matmul, bias and Relu; `scale` is one of the weights."""
    rng = np.random.default_rng(7)
    weight = rng.standard_normal((width, width)).astype(dtype)
    weight[0, 0] = scale
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return build_model(
        [
            helper.make_node("MatMul", ["x", "w"], ["product"]),
            helper.make_node("Add", ["product", "b"], ["sum"]),
            helper.make_node("Relu", ["sum"], ["y"]),
        ],
        [("x", element, [rows, width])],
        [("y", element, [rows, width])],
        {"w": weight, "b": rng.standard_normal(width).astype(dtype)},
    )


def foldable_model(products: int = 12, width: int = 256) -> ModelProto:
    """The sum of an input and a product of weights, which ONNX Runtime works out once, unless it is told not to."""
    rng = np.random.default_rng(0)
    nodes = [helper.make_node("MatMul", [f"p{n}", f"w{n}"], [f"p{n + 1}"]) for n in range(products)]
    return build_model(
        [*nodes, helper.make_node("Add", ["x", f"p{products}"], ["y"])],
        [("x", FLOAT, [width, width])],
        [("y", FLOAT, [width, width])],
        {
            name: rng.standard_normal((width, width), np.float32) / np.float32(width**0.5)
            for name in ("p0", *(f"w{n}" for n in range(products)))
        },
    )


def pair_model(
    operators: tuple[str, str] = ("Relu", "Neg"), names: tuple[str, str] = ("first", "second")
) -> ModelProto:
    """x (2, 3) through one node each to outputs `first` and `second`."""
    return build_model(
        [helper.make_node(operator, ["x"], [name]) for operator, name in zip(operators, names, strict=True)],
        [("x", TensorProto.FLOAT, [2, 3])],
        [(name, TensorProto.FLOAT, [2, 3]) for name in names],
    )


FLOAT = TensorProto.FLOAT


def one_node(make_model, operator, *, shape=(4, 5), element=FLOAT, output=None, **attributes):
    return make_model(
        [helper.make_node(operator, ["x"], ["y"], **attributes)],
        [("x", element, shape)],
        [("y", output or element, shape)],
    )


def scaled_by(make_model, factor, dtype=np.float32):
    """y = x * factor: a relative error of the output is that of the factor."""
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return make_model(
        [helper.make_node("Mul", ["x", "factor"], ["y"])],
        [("x", element, [4, 5])],
        [("y", element, [4, 5])],
        {"factor": np.array(factor, dtype)},
    )


def scaled(path, factor, shape=(4, 4), there_and_back=0.0):
    """x * factor, over the detour of adding a number and taking it away."""
    nodes = [("Add", ["x", "far"], ["up"]), ("Sub", ["up", "far"], ["down"]), ("Mul", ["down", "factor"], ["y"])]
    stored = {"factor": factor, "far": there_and_back}
    graph = helper.make_graph(
        [helper.make_node(*node) for node in nodes],
        "scaled",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(np.float32(value), name) for name, value in stored.items()],
    )
    onnx.save(helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path
