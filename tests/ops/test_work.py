"""Floating-point operations and bytes of an application, in closed form."""

import pytest

from rlflow.ir.node import Node, Ref
from rlflow.ir.tensor_type import TensorType, item_size
from rlflow.ops.registry import OPERATORS, bytes_moved, flops, infer


def t(*shape: int, dtype: str = "float32") -> TensorType:
    return TensorType(dtype, shape)


HEADS = [t(2, 3, 4, 5), t(2, 3, 6, 5), t(2, 3, 6, 7)]
WINDOW = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)}
POOL = {"kernel_shape": (2, 2), "strides": (1, 1), "pads": (0, 0, 0, 0)}


def _work(op: str, attributes: dict, operands: list[TensorType]) -> tuple[int, int]:
    attributes = {**OPERATORS[op].defaults, **attributes}
    types = infer(op, attributes, operands)
    refs = tuple(Ref(i) for i in range(len(operands)))
    node = Node(op, refs, attributes, types, ("",) * len(types))
    return flops(node, operands), bytes_moved(node, operands)


@pytest.mark.parametrize(
    ("op", "attributes", "operands", "operations", "elements_moved"),
    [
        ("MatMul", {}, [t(2, 3, 4), t(4, 5)], 2 * 2 * 3 * 4 * 5, 24 + 20 + 30),
        ("MatMul", {}, [t(4), t(4)], 2 * 4, 4 + 4 + 1),
        ("Gemm", {}, [t(3, 4), t(4, 5)], 2 * 3 * 4 * 5, 12 + 20 + 15),
        ("Gemm", {"transA": 1}, [t(4, 3), t(4, 5), t(5)], 2 * 3 * 4 * 5 + 15, 12 + 20 + 5 + 15),
        ("Add", {}, [t(3, 4), t(4)], 12, 12 + 4 + 12),
        ("Sum", {}, [t(3, 4), t(4), t(1)], 2 * 12, 12 + 4 + 1 + 12),
        ("Sum", {}, [t(3, 4)], 0, 12 + 12),
        ("Relu", {}, [t(3, 4)], 12, 24),
        ("Clip", {"min": 0.0, "max": 6.0}, [t(3, 4)], 24, 24),
        ("Erf", {}, [t(3, 4)], 12, 24),
        ("ReduceSum", {"axes": (1,)}, [t(3, 4)], 12, 12 + 3),
        ("Softmax", {}, [t(3, 4)], 5 * 12, 24),
        ("LayerNormalization", {}, [t(3, 4), t(4), t(4)], 8 * 12, 12 + 8 + 12),
        ("RMSNormalization", {}, [t(3, 4), t(4)], 6 * 12, 12 + 4 + 12),
        ("Attention", {"scale": 1.0}, HEADS, 2 * 3 * 24 * (2 * 12 + 5), 120 + 180 + 252 + 168),
        ("Attention", {"scale": 1.0}, [*HEADS, t(4, 6)], 2 * 3 * 24 * (2 * 12 + 6), 120 + 180 + 252 + 24 + 168),
        ("com.microsoft.FusedMatMul", {"transA": 1}, [t(2, 4, 3), t(4, 5)], 2 * 2 * 3 * 4 * 5, 24 + 20 + 30),
        ("com.microsoft.FusedGemm", {"activation": "Relu"}, [t(3, 4), t(4, 5)], 2 * 60 + 15, 12 + 20 + 15),
        ("com.microsoft.SkipLayerNormalization", {}, [t(3, 4), t(3, 4), t(4)], 9 * 12, 12 + 12 + 4 + 12),
        ("Gelu", {}, [t(3, 4)], 5 * 12, 24),
        ("Constant", {"value_float": 0.5}, [], 0, 1),
        ("Conv", WINDOW, [t(2, 3, 5, 5), t(4, 3, 2, 3)], 2 * 96 * 18, 150 + 72 + 96),
        ("Conv", WINDOW, [t(2, 3, 5, 5), t(4, 3, 2, 3), t(4)], 2 * 96 * 18 + 96, 150 + 72 + 4 + 96),
        ("Conv", WINDOW | {"group": 3}, [t(2, 3, 5, 5), t(6, 1, 2, 3)], 2 * 144 * 6, 150 + 36 + 144),
        ("MaxPool", POOL, [t(2, 3, 5, 5)], 2 * 3 * 16 * 4, 150 + 96),
        ("AveragePool", POOL, [t(2, 3, 5, 5)], 2 * 3 * 16 * 4, 150 + 96),
        ("GlobalAveragePool", {}, [t(2, 3, 5, 5)], 150, 150 + 6),
        ("BatchNormalization", {}, [t(2, 3, 5), *[t(3)] * 4], 4 * 30, 30 + 12 + 30),
        ("Pad", {"pads": (0, 1, 0, 0)}, [t(3, 4)], 0, 12 + 15),
        ("Transpose", {"perm": (1, 0)}, [t(3, 4)], 0, 24),
        ("Concat", {"axis": 0}, [t(3, 4), t(1, 4)], 0, 12 + 4 + 16),
        ("Split", {"split": (1, 2)}, [t(3, 4)], 0, 24),
        ("Reshape", {"shape": (4, 3)}, [t(3, 4)], 0, 0),
        ("Identity", {}, [t(3, 4)], 0, 0),
        ("Flatten", {}, [t(3, 4)], 0, 0),
        ("Squeeze", {"axes": (0,)}, [t(1, 4)], 0, 0),
        ("Unsqueeze", {"axes": (0,)}, [t(4)], 0, 0),
        ("Add", {}, [t(0, 4), t(4)], 0, 4),
    ],
)
def test_work(op: str, attributes: dict, operands: list[TensorType], operations: int, elements_moved: int) -> None:
    assert _work(op, attributes, operands) == (operations, 4 * elements_moved)


def test_bytes_follow_each_operands_type() -> None:
    assert _work("Gather", {}, [t(10, 4), t(2, dtype="int64")]) == (0, 4 * 40 + 8 * 2 + 4 * 8)
    assert _work("Cast", {"to": "float16"}, [t(10, dtype="float64")]) == (0, 80 + 20)


def test_an_opaque_node_moves_bytes_and_has_no_known_operations() -> None:
    node = Node("Hardmax", (Ref(0),), {}, (t(3, 4),), ("",))
    assert (flops(node, [t(3, 4)]), bytes_moved(node, [t(3, 4)])) == (0, 96)
    assert bytes_moved(Node("Hardmax", (Ref(0),), {}, (None,), ("",)), [None]) == 0


@pytest.mark.parametrize(
    ("dtype", "size"),
    [("float32", 4), ("float64", 8), ("bool", 1), ("bfloat16", 2), ("int4", 1), ("complex64", 8), ("float8e4m3fn", 1)],
)
def test_sizes_of_elements(dtype: str, size: int) -> None:
    assert item_size(dtype) == size
    assert TensorType(dtype, (3, "n")).nbytes == 3 * size, "an unknown dimension counts as one"
