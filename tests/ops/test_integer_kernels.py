"""The table of operators that ONNX Runtime computes with whole numbers, held against what it makes of each."""

from collections import Counter

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper, shape_inference

from rlflow.ops.integer_kernels import INTEGER_KERNELS, Computes, Moves
from rlflow.runtime.session import fused_model

FIRST, PAIR = np.int64([0]), np.float32([1, 1, 2, 2])
UNARY: dict[str, tuple[list[np.ndarray], dict[str, object]]] = {
    "AveragePool": ([], {"kernel_shape": [2, 2]}),
    "DepthToSpace": ([], {"blocksize": 2}),
    "Expand": ([np.int64([2, 4, 4, 4])], {}),
    "Flatten": ([], {}),
    "Gather": ([FIRST], {"axis": 1}),
    "GatherElements": ([np.zeros((1, 4, 4, 4), np.int64)], {"axis": 1}),
    "GlobalAveragePool": ([], {}),
    "LeakyRelu": ([], {}),
    "MaxPool": ([], {"kernel_shape": [2, 2]}),
    "ReduceMax": ([], {"axes": [1]}),
    "ReduceMin": ([], {"axes": [1]}),
    "Reshape": ([np.int64([4, 16])], {}),
    "Resize": ([np.float32([]), PAIR], {"mode": "nearest"}),
    "Sigmoid": ([], {}),
    "Slice": ([FIRST, np.int64([1]), FIRST], {}),
    "Softmax": ([], {}),
    "Split": ([], {"axis": 1}),
    "Squeeze": ([FIRST], {}),
    "Tile": ([np.int64([1, 2, 1, 1])], {}),
    "Transpose": ([], {"perm": [0, 1, 3, 2]}),
    "Unsqueeze": ([FIRST], {}),
}
BINARY: dict[str, dict[str, object]] = {
    "Add": {},
    "Concat": {"axis": 1},
    "Conv": {},
    "Gemm": {},
    "MatMul": {},
    "Mul": {},
}
FLOATS: dict[str, dict[str, object]] = {"Erf": {}, "Neg": {}, "Tanh": {}, "ReduceMean": {"axes": [1]}}
PARTS = {name: part for name, part in INTEGER_KERNELS.items() if isinstance(part, Moves | Computes)}


def kernels(op: str, is_quantised: bool = True, weights: str = "uint8") -> Counter[str]:
    """The kernels for one operator that reads bytes, its results quantised by the same scale or not at all."""
    operands, attributes = UNARY.get(op, ([], BINARY.get(op, {}) or FLOATS.get(op, {})))
    constants: dict[str, np.ndarray] = {f"c{i}": value for i, value in enumerate(operands)}
    constants |= {"scale": np.float32(0.05), "zero": np.uint8(3), "none": np.array(0, weights)}
    shape = [4, 4] if op == "Gemm" else [1, 4, 4, 4]
    constants |= {
        "bytes": np.ones([4, 4, 1, 1] if op == "Conv" else shape, weights),
        "mask": np.array([True, False] * 2),
    }
    ends = ["r", "s"] if op == "Split" else ["r"]
    second = ["w"] if op in BINARY or op == "Where" else []
    floats = ["x", *second, *(name for name in constants if name[0] == "c")]
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["x"]),
        *(helper.make_node("DequantizeLinear", ["bytes", "scale", "none"], [name]) for name in second),
        helper.make_node(op, ["mask", *floats] if op == "Where" else floats, ends, **attributes),
        *(helper.make_node("QuantizeLinear", [end, "scale", "zero"], [f"{end}q"]) for end in ends if is_quantised),
    ]
    made = [f"{end}q" for end in ends] if is_quantised else ends
    graph = helper.make_graph(
        nodes,
        op,
        [helper.make_tensor_value_info("q", TensorProto.UINT8, shape)],
        [helper.make_empty_tensor_value_info(name) for name in made],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return Counter(node.op_type for node in fused_model(shape_inference.infer_shapes(model)).graph.node)


def test_every_operator_is_tried() -> None:
    assert PARTS.keys() == {*UNARY, *BINARY, "Where"}
    assert INTEGER_KERNELS.keys() <= {schema.name for schema in onnx.defs.get_all_schemas()}


@pytest.mark.parametrize("op", [name for name, part in PARTS.items() if isinstance(part, Moves)])
def test_bytes_are_moved(op: str) -> None:
    """By the operator itself, and no conversion is left. Where it carries, one conversion is enough."""
    assert kernels(op) == {op: 1}
    expected = [op, "DequantizeLinear"] if PARTS[op] == Moves(carries=True) else ["DequantizeLinear", op]
    assert [*kernels(op, is_quantised=False)] == expected


@pytest.mark.parametrize("op", [name for name, part in PARTS.items() if isinstance(part, Computes)])
def test_bytes_are_computed_with(op: str) -> None:
    part = PARTS[op]
    assert isinstance(part, Computes)
    assert "DequantizeLinear" not in kernels(op, weights="int8" if part.weights else "uint8")
    assert ("DequantizeLinear" not in kernels(op, is_quantised=False)) == part.to_floats
    if op in BINARY:
        assert ("DequantizeLinear" not in kernels(op, weights="int8")) == part.weights


@pytest.mark.parametrize("op", FLOATS)
def test_all_others_are_computed_with_floats(op: str) -> None:
    assert kernels(op) == dict.fromkeys(("DequantizeLinear", op, "QuantizeLinear"), 1)
