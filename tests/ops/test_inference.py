"""Type inference: what it refuses and why, and what it can say of dimensions that are symbols."""

import pytest

from rlflow.errors import TypeInferenceError
from rlflow.ir.dimension import at_most, over, plus
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.ops.registry import OPERATORS, infer


def t(*shape: Dimension, dtype: str = "float32") -> TensorType:
    return TensorType(dtype, shape)


WINDOW = {"strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)}
SCALED = {"scale": 0.5}
HEADS = [t(2, 3, 4, 5), t(2, 3, 6, 5), t(2, 3, 6, 7)]
POOL = {"kernel_shape": (2, 2), "strides": (1, 1), "pads": (0, 0, 0, 0)}
SAME = {"strides": (1, 2), "auto_pad": "SAME_UPPER"}
UNKNOWN = TensorType("float32", None)
INDEX = TensorType("int64", (2,))


@pytest.mark.parametrize(
    ("op", "attributes", "operands", "reason"),
    [
        ("Add", {}, [t(2, 3), t(4)], r"Add: dimensions \[3, 4\] do not broadcast"),
        ("Add", {}, [t(2), t(2, dtype="float64")], "Add: operands of different element types"),
        ("Add", {}, [t(2)], r"Add: 1 typed operands, expected \(2, 2\)"),
        ("Add", {}, [t(2), None], "Add: 1 typed operands"),
        ("Mul", {}, [t(2), UNKNOWN], "Mul: an operand of unknown rank"),
        ("Pow", {"exponent": 2.0}, [t(2, dtype="int32")], "Pow: integer powers"),
        ("MatMul", {}, [t(2, 3), t(4, 5)], "MatMul: dimensions 3 and 4 must be equal"),
        ("MatMul", {}, [t(), t(4)], "MatMul: a scalar operand"),
        ("MatMul", {}, [t(2, 4, 3), t(5, 3, 4)], r"MatMul: dimensions \[2, 5\] do not broadcast"),
        ("Gemm", {"transA": 0, "transB": 0}, [t(2, 3, 4), t(4, 5)], "Gemm: operands of rank 3 and 2"),
        ("Gemm", {"transA": 1, "transB": 0}, [t(2, 3), t(3, 5)], "Gemm: dimensions 2 and 3 must be equal"),
        ("Gemm", {"transA": 0, "transB": 0}, [t(1, 3), t(3, 5), t(2, 5)], r"Gemm: C of shape \(2, 5\)"),
        ("ReduceSum", {"axes": (2,), "keepdims": 1}, [t(2, 3)], "ReduceSum: axis 2 of a tensor of rank 2"),
        ("Softmax", {"axis": 3}, [t(2, 3)], "Softmax: axis 3 of a tensor of rank 2"),
        ("Softmax", {"axis": "last"}, [t(2, 3)], "Softmax: axis 'last'"),
        (
            "LayerNormalization",
            {"axis": -1},
            [t(2, 3), t(2)],
            r"LayerNormalization: dimensions \[2, 3\] do not broadcast",
        ),
        ("LayerNormalization", {"axis": -1}, [t(2, 3), t(2, 3)], r"LayerNormalization: .* does not scale \(3,\)"),
        ("LayerNormalization", {"axis": 2}, [t(2, 3), t(3)], "LayerNormalization: axis 2"),
        ("Transpose", {"perm": (0, 0)}, [t(2, 3)], r"Transpose: \(0, 0\) does not permute 2 axes"),
        ("Transpose", {"perm": (0,)}, [t(2, 3)], "does not permute 2 axes"),
        ("Reshape", {"shape": (4, 2)}, [t(2, 3)], r"Reshape: .* has 6 elements, .* has 8"),
        ("Reshape", {"shape": (-1, 4)}, [t(2, 3)], "Reshape: .* does not divide"),
        ("Reshape", {"shape": (-1, -1)}, [t(2, 3)], "more than one dimension to be inferred"),
        ("Reshape", {"shape": (-2, 3)}, [t(2, 3)], "more than one dimension to be inferred"),
        ("Reshape", {"shape": (1, 2, 0)}, [t(2, 3)], "copies a dimension"),
        ("Reshape", {"shape": 6}, [t(2, 3)], "expected a list of integers"),
        ("Reshape", {"shape": (6.0,)}, [t(2, 3)], "expected a list of integers"),
        ("Concat", {"axis": 0}, [t(2, 3), t(2)], "Concat: operands of different ranks"),
        ("Concat", {"axis": 0}, [t(2, 3), t(2, 4)], "Concat: dimensions 3 and 4"),
        ("Concat", {"axis": 2}, [t(2, 3)], "Concat: axis 2"),
        ("Concat", {"axis": 0}, [t(2), INDEX], "Concat: operands of different element types"),
        ("Split", {"axis": 0, "split": (1, 2)}, [t(2)], "Split: sizes .* do not add up to 2"),
        ("Split", {"axis": 0, "split": (3, -1)}, [t(2)], "Split: negative sizes"),
        ("Slice", {"axes": (0,), "starts": (0, 1), "ends": (1,), "steps": (1,)}, [t(2)], "Slice: 1 axes, 2 starts"),
        ("Slice", {"axes": (0,), "starts": (0,), "ends": (1,), "steps": (0,)}, [t(2)], "Slice: .* steps of 0"),
        (
            "Slice",
            {"axes": (0,), "starts": (1,), "ends": (2**31 - 1,), "steps": (-1,)},
            [t(2)],
            "Slice: .* steps of -1",
        ),
        ("Slice", {"axes": (1,), "starts": (0,), "ends": (1,), "steps": (1,)}, [t(2)], "Slice: axis 1"),
        ("Gather", {"axis": 1}, [t(2), INDEX], "Gather: axis 1"),
        ("Unsqueeze", {"axes": (0, -3)}, [t(2)], "Unsqueeze: axes .* name one axis twice"),
        ("Unsqueeze", {"axes": (3,)}, [t(2)], "Unsqueeze: axis 3"),
        ("Squeeze", {"axes": (0,)}, [t(2, 1)], "Squeeze: .* not all of length one"),
        ("Flatten", {"axis": 3}, [t(2, 1)], "Flatten: axis 3"),
        ("Conv", WINDOW, [t(1, 3), t(4, 3)], "Conv: .* under filters"),
        ("Conv", WINDOW, [t(1, 3, 5, 5), t(4, 3, 2)], "Conv: .* under filters"),
        ("Conv", WINDOW, [t(1, 3, 5, 5, dtype="int32"), t(4, 3, 2, 2, dtype="int32")], "Conv: .* under filters"),
        ("Conv", WINDOW, [t(1, 3, 5, 5), t(4, 2, 2, 2)], "Conv: dimensions 3 and 2 must be equal"),
        ("Conv", WINDOW | {"group": 2}, [t(1, 4, 5, 5), t(3, 2, 2, 2)], "Conv: filters .* in 2 groups"),
        ("Conv", WINDOW | {"group": 0}, [t(1, 4, 5, 5), t(3, 2, 2, 2)], "Conv: 0 groups"),
        ("Conv", WINDOW, [t(1, 3, 5, 5), t(4, 3, 2, 2), t(1)], "Conv: a bias"),
        ("Conv", WINDOW, [t(1, 3, 5, 5), t(4, 3, 6, 2)], r"Conv: a window of 6 in 0 \+ 5 \+ 0"),
        ("Conv", WINDOW, [t(1, 3, 0, 5), t(4, 3, 1, 1)], "Conv: a window of 1 in 0"),
        ("Conv", WINDOW, [t(1, 3, 5, 5), t(4, 3, "k", 1)], "Conv: sizes .* must be known"),
        ("Conv", WINDOW | {"pads": (0, 0)}, [t(1, 3, 5, 5), t(4, 3, 2, 2)], "Conv: .* for 2 spatial axes"),
        ("Conv", WINDOW | {"pads": (0, -1, 0, 0)}, [t(1, 3, 5, 5), t(4, 3, 2, 2)], "Conv: .* pads"),
        ("Conv", WINDOW | {"strides": (0, 1)}, [t(1, 3, 5, 5), t(4, 3, 2, 2)], "Conv: .* strides"),
        ("Conv", WINDOW | {"auto_pad": "SAME"}, [t(1, 3, 5, 5), t(4, 3, 2, 2)], "Conv: .* auto_pad 'SAME'"),
        (
            "Conv",
            WINDOW | {"auto_pad": "VALID", "pads": (1, 0, 0, 0)},
            [t(1, 3, 5, 5), t(4, 3, 2, 2)],
            "Conv: pads .* beside auto_pad 'VALID'",
        ),
        (
            "Conv",
            WINDOW | {"auto_pad": "SAME_UPPER", "dilations": (2, 1)},
            [t(1, 3, 5, 5), t(4, 3, 2, 2)],
            "Conv: dilations .* beside auto_pad SAME_UPPER",
        ),
        ("MaxPool", POOL, [t(2, 3)], "MaxPool: .* no batch of images"),
        ("MaxPool", POOL, [t(1, 3, 5, 5, dtype="uint8")], "MaxPool: .* no batch of images"),
        ("MaxPool", POOL, [t(1, 3, 5, 5, 5)], "MaxPool: a window .* over an image"),
        ("MaxPool", POOL | {"pads": (2, 0, 0, 0)}, [t(1, 3, 5, 5)], "MaxPool: pads .* around windows"),
        ("MaxPool", POOL | {"pads": (1, 0, 0, 0), "dilations": (2, 2)}, [t(1, 3, 5, 5)], "MaxPool: pads .* dilations"),
        ("MaxPool", POOL | {"auto_pad": "SAME_LOWER", "strides": (3, 1)}, [t(1, 3, 5, 5)], "pads negative"),
        (
            "MaxPool",
            POOL | {"kernel_shape": (1, 1), "strides": (2, 2), "ceil_mode": 1},
            [t(1, 3, 4, 4)],
            "MaxPool: a window that starts behind",
        ),
        ("AveragePool", POOL | {"ceil_mode": 1, "count_include_pad": 1}, [t(1, 3, 5, 5)], "AveragePool: .* understood"),
        ("AveragePool", POOL | {"dilations": (2, 2)}, [t(1, 3, 5, 5)], "AveragePool: .* not understood"),
        ("GlobalAveragePool", {}, [t(2, 3)], "GlobalAveragePool: .* no batch of images"),
        ("BatchNormalization", {}, [t(2, 3), *[t(3)] * 3, t(2)], "BatchNormalization: .* for the channels"),
        ("BatchNormalization", {}, [t(2)] * 5, "BatchNormalization: .* for the channels"),
        (
            "BatchNormalization",
            {},
            [t(2, 3), *[t(3, dtype="float64")] * 4],
            "BatchNormalization: operands of different",
        ),
        ("Pad", {"pads": (0, 0), "mode": "edge"}, [t(2)], "Pad: 'edge' .* not understood"),
        ("Pad", {"pads": (0, 0)}, [t(2, dtype="int64")], "Pad: 'constant' of int64"),
        ("Pad", {"pads": (0, -1)}, [t(2)], "Pad: .* around 1 axes"),
        ("Pad", {"pads": (0, 1, 0)}, [t(2)], "Pad: .* around 1 axes"),
        ("Constant", {"value_float": 1}, [], "is neither a float nor a list of floats"),
        ("Gelu", {"approximate": "sigmoid"}, [t(2)], "Gelu: 'sigmoid'"),
        ("Gelu", {}, [t(2, dtype="int32")], "Gelu: 'none' of int32"),
        ("RMSNormalization", {}, [t(2, 3), t(2)], "RMSNormalization: .* do not broadcast"),
        ("RMSNormalization", {}, [t(2, 3), t(2, 3)], "RMSNormalization: .* does not scale"),
        ("Attention", SCALED, [t(2, 3, 4), t(2, 3, 4), t(2, 3, 4)], "Attention: .* not understood"),
        ("Attention", {"scale": -1.0}, HEADS, "Attention: .* scale -1.0"),
        ("Attention", SCALED | {"is_causal": 1}, HEADS, "Attention: .*'is_causal'.* not understood"),
        ("Attention", SCALED, [t(2, 4, 4, 5), *HEADS[1:]], "Attention: dimensions 4 and 3"),
        ("Attention", SCALED, [t(2, 3, 4, 6), *HEADS[1:]], "Attention: dimensions 6 and 5"),
        ("Attention", SCALED, [*HEADS[:2], t(2, 3, 5, 7)], "Attention: dimensions 6 and 5"),
        ("Attention", SCALED, [*HEADS, t(1, 6)], "Attention: a mask"),
        ("Attention", SCALED, [t(2, 3, None, 5), *HEADS[1:], t(None, 6)], "Attention: a mask"),
        ("Attention", SCALED, [*HEADS, t(6)], "Attention: a mask"),
        ("Attention", SCALED, [*HEADS, t(2, 2, 3, 4, 6)], "Attention: a mask"),
        ("Attention", SCALED, [*HEADS, t(4, 6, dtype="bool")], "Attention: operands of different"),
        ("com.microsoft.FusedMatMul", {"transBatchA": 1}, [t(2, 3), t(3, 2)], "'transBatchA'.* not understood"),
        ("com.microsoft.FusedMatMul", {}, [t(3), t(3, 2)], "FusedMatMul: .* times 1.0"),
        ("com.microsoft.FusedMatMul", {"transA": 1}, [t(2, 3), t(3, 2)], "MatMul: dimensions 2 and 3"),
        ("com.microsoft.BiasGelu", {}, [t(2, 3), t(2)], "BiasGelu: a bias"),
        ("com.microsoft.Gelu", {}, [t(2, dtype="float64")], "Gelu: .* has no kernel"),
        ("com.microsoft.QuickGelu", {"alpha": 1}, [t(2)], "QuickGelu: 1 times"),
        ("com.microsoft.SkipLayerNormalization", {}, [t(3), t(3), t(3)], "SkipLayerNormalization: .*"),
        ("com.microsoft.SkipLayerNormalization", {}, [t(2, 3), t(1, 3), t(3)], "SkipLayerNormalization: .*"),
        ("com.microsoft.SkipLayerNormalization", {}, [t(2, 3), t(2, 3), t(1)], "SkipLayerNormalization: .*"),
        ("com.microsoft.FusedGemm", {}, [t(2, 3), t(3, 2)], "FusedGemm: the activation None"),
        ("com.microsoft.FusedGemm", {"activation": "Tanh"}, [t(2, 3), t(3, 2)], "the activation 'Tanh'"),
        ("Cast", {"to": "string"}, [t(2)], "Cast: from float32 to 'string'"),
        ("Cast", {"to": "float32"}, [t(2, dtype="bfloat16")], "Cast: from bfloat16"),
    ],
)
def test_refusals(op: str, attributes: dict, operands: list, reason: str) -> None:
    with pytest.raises(TypeInferenceError, match=reason):
        infer(op, {**OPERATORS[op].defaults, **attributes}, operands)


@pytest.mark.parametrize("op", sorted(OPERATORS.keys() - {"Constant"}))
def test_no_operator_takes_nothing_or_everything(op: str) -> None:
    for count in (0, 65) if op != "Constant" else (1, 65):
        with pytest.raises(TypeInferenceError, match=f"{op}: {count} typed operands"):
            infer(op, {}, [t(2)] * count)


N, M = "n", "m"
HALF = plus(over(plus(M, -1), 2), 1)


@pytest.mark.parametrize(
    ("op", "attributes", "operands", "expected"),
    [
        ("Add", {}, [t(N, 3), t(3)], (N, 3)),
        ("Add", {}, [t(N, 1), t(1, M)], (N, M)),
        ("Add", {}, [t(N), t(M)], (None,)),
        ("Add", {}, [t(N), t(5)], (5,)),
        ("Add", {}, [t(None), t(1)], (None,)),
        ("Add", {}, [t(0), t(1)], (0,)),
        ("Relu", {}, [t(N, None)], (N, None)),
        ("MatMul", {}, [t(N, M, 4), t(4, 5)], (N, M, 5)),
        ("MatMul", {}, [t(N, M), t(M, N)], (N, N)),
        ("MatMul", {}, [t(N, M), t(M)], (N,)),
        ("MatMul", {}, [t(M), t(M)], ()),
        ("Gemm", {"transA": 1, "transB": 1}, [t(4, N), t(M, 4)], (N, M)),
        ("ReduceMean", {"axes": (-1,), "keepdims": 0}, [t(N, 3)], (N,)),
        ("ReduceMean", {"axes": (0, -2), "keepdims": 1}, [t(N, 3)], (1, 3)),
        ("LayerNormalization", {"axis": -1}, [t(N, M, 8), t(8), t(8)], (N, M, 8)),
        ("Transpose", {"perm": (2, 0, 1)}, [t(N, M, 3)], (3, N, M)),
        ("Reshape", {"shape": (0, -1)}, [t(N, 3, 4)], (N, 12)),
        ("Reshape", {"shape": (0, 0, 2, -1)}, [t(N, M, 8)], (N, M, 2, 4)),
        ("Reshape", {"shape": (0, -1)}, [t(None, 3, 4)], (None, 12)),
        ("Reshape", {"shape": (-1, 12)}, [t(N, 3, 4)], (N, 12)),
        ("Reshape", {"shape": (-1, 6)}, [t(N, 3, 4)], (None, 6)),
        ("Reshape", {"shape": (-1, 8)}, [t(N, M, 8)], (None, 8)),
        ("Reshape", {"shape": (0, 0, -1)}, [t(N, M, 2, 4)], (N, M, 8)),
        ("Reshape", {"shape": (-1,)}, [t(N)], (N,)),
        ("Reshape", {"shape": (0, 3)}, [t(0, 3)], (0, 3)),
        ("Reshape", {"shape": (-1, 3)}, [t(0, 3)], (0, 3)),
        ("Concat", {"axis": 1}, [t(N, 2), t(N, 3)], (N, 5)),
        ("Concat", {"axis": 0}, [t(N, 2), t(M, 2)], (None, 2)),
        ("Concat", {"axis": 1}, [t(N, 2), t(4, 3)], (4, 5)),
        ("Concat", {"axis": 0}, [t(0), t(3)], (3,)),
        ("Concat", {"axis": 0}, [t(N), t(0)], (N,)),
        ("Concat", {"axis": 0}, [t(N)], (N,)),
        ("Slice", {"axes": (1,), "starts": (1,), "ends": (3,), "steps": (1,)}, [t(N, 5)], (N, 2)),
        ("Slice", {"axes": (0,), "starts": (1,), "ends": (3,), "steps": (1,)}, [t(N, 5)], (None, 5)),
        ("Gather", {"axis": 1}, [t(N, 5, M), t(2, 3, dtype="int64")], (N, 2, 3, M)),
        ("Conv", WINDOW, [t(N, 3, 5, 5), t(4, 3, 2, 2)], (N, 4, 4, 4)),
        ("Conv", WINDOW, [t(N, None, M, 5), t(4, 3, 2, 2)], (N, 4, plus(M, -1), 4)),
        ("Conv", WINDOW | {"pads": (1, 0, 1, 0)}, [t(N, 3, M, 5), t(4, 3, 3, 2)], (N, 4, M, 4)),
        ("Conv", WINDOW | {"strides": (2, 1)}, [t(N, 3, M, 5), t(4, 3, 1, 2)], (N, 4, HALF, 4)),
        ("Conv", WINDOW | {"strides": (2, 1), "pads": (1, 0, 1, 0)}, [t(N, 3, M, 5), t(4, 3, 3, 2)], (N, 4, HALF, 4)),
        ("Conv", SAME | {"dilations": (1, 1)}, [t(N, 3, M, 5), t(4, 3, 3, 3)], (N, 4, M, 3)),
        ("Conv", SAME | {"dilations": (1, 1)}, [t(N, 3, 5, M), t(4, 3, 3, 3)], (N, 4, 5, None)),
        ("MaxPool", POOL | {"strides": (2, 2), "ceil_mode": 1}, [t(N, M, 5, 4)], (N, M, 3, 2)),
        ("AveragePool", POOL | {"pads": (1, 0, 0, 1)}, [t(N, 3, M, M)], (N, 3, M, M)),
        ("GlobalAveragePool", {}, [t(N, 3, M, None)], (N, 3, 1, 1)),
        ("BatchNormalization", {}, [t(N, 3, M), *[t(3)] * 4], (N, 3, M)),
        ("Pad", {"pads": (0, 1, 0, 2)}, [t(N, 3)], (N, 6)),
        ("Pad", {"pads": (0, 1, 0, 2)}, [t(N, M)], (N, plus(M, 3))),
        ("Concat", {"axis": 0}, [t(N, 2), t(3, 2), t(4, 2)], (plus(N, 7), 2)),
        ("Concat", {"axis": 0}, [t(None, 2), t(3, 2)], (None, 2)),
        ("Add", {}, [t(N, 3), t(at_most(N, 64), 3)], (N, 3)),
        ("Add", {}, [t(N, 3), t(at_most(M, 64), 3)], (None, 3)),
        ("MaxPool", POOL | {"ceil_mode": 1}, [t(N, 3, M, 5)], (N, 3, None, 4)),
        ("Unsqueeze", {"axes": (0, -1)}, [t(N)], (1, N, 1)),
        ("Squeeze", {"axes": (1,)}, [t(N, 1, M)], (N, M)),
        ("Flatten", {"axis": 1}, [t(N, 3, 4)], (N, 12)),
        ("Flatten", {"axis": 2}, [t(N, 1, 4)], (N, 4)),
        ("Flatten", {"axis": 2}, [t(N, M, 4)], (None, 4)),
        ("Flatten", {"axis": 0}, [t(2, 3)], (1, 6)),
        ("Flatten", {"axis": -1}, [t(2, 3, 4)], (6, 4)),
        ("Flatten", {"axis": 2}, [t(2, 3)], (6, 1)),
        ("Flatten", {"axis": 1}, [t(0, N)], (0, N)),
    ],
)
def test_symbols_survive_where_that_is_provable(op: str, attributes: dict, operands: list, expected: tuple) -> None:
    assert infer(op, {**OPERATORS[op].defaults, **attributes}, operands)[0].shape == expected


def test_split_of_a_symbol_has_the_sizes_it_names() -> None:
    assert [r.shape for r in infer("Split", {"axis": 0, "split": (2, 3)}, [t(N, M)])] == [(2, M), (3, M)]
