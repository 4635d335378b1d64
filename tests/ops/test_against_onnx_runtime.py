"""Each operator's meaning and types against ONNX Runtime's and ONNX's own inference, over drawn shapes and attributes.

Operators are drawn in their canonical form and in ONNX's spelling of it at opset 18. Tolerances: rounding of the
element type times the length of the longest sum times a constant for the elementary functions, relative to the size of
the terms.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from onnx.reference import ReferenceEvaluator
from support import windows
from support.applications import PROPER, SHAPES, Application, array, axes_of, broadcastable

from rlflow.ir.node import AttributeValue
from rlflow.onnx_io.element_type import from_type_proto
from rlflow.ops.algebra import QUANTISED
from rlflow.ops.registry import OPERATORS, infer

Draw = st.DrawFn
FLOATS = ("float32", "float64")
NUMBERS = ("float32", "float64", "int32", "int64")
FUNCTION_ROUNDINGS = 8
"""ONNX Runtime's exp, erf and tanh are polynomials; 8 roundings is what their authors state (MLAS, 4 ulp) with room for
the operations around them."""


def _elementwise(op: str, *, count: int = 2, dtypes: tuple[str, ...] = NUMBERS) -> Callable[[Draw], Application]:
    def make(draw: Draw) -> Application:
        dtype = draw(st.sampled_from(dtypes))
        shape = draw(SHAPES)
        shapes = [shape, *(broadcastable(draw, shape) for _ in range(count - 1))]
        order = draw(st.permutations(shapes))
        return Application(op, tuple(array(draw, s, dtype, positive=op == "Div") for s in order))

    return make


def _unary(op: str, *, positive: bool = False, dtypes: tuple[str, ...] = FLOATS) -> Callable[[Draw], Application]:
    return lambda draw: Application(op, (array(draw, draw(SHAPES), draw(st.sampled_from(dtypes)), positive=positive),))


def _pow(draw: Draw) -> Application:
    exponent = draw(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0, -1.0, 1.7]))
    x = array(draw, draw(SHAPES), "float32", positive=True)
    return Application("Pow", (x,), {"exponent": exponent}, (np.float32(exponent),))


def _clip(draw: Draw) -> Application:
    """Bounds may be missing, and the lower one may be above the upper."""
    x = array(draw, draw(SHAPES), draw(st.sampled_from(FLOATS)))
    low, high = (draw(st.sampled_from([None, *numbers])) for numbers in ((-1.0, 0.0, 2.0), (0.5, 1.0, 6.0)))
    attributes = {name: value for name, value in (("min", low), ("max", high)) if value is not None}
    parameters = tuple(None if value is None else np.asarray(value, x.dtype) for value in (low, high))
    return Application("Clip", (x,), attributes, parameters)


def _matmul(draw: Draw) -> Application:
    m, k, n = (draw(st.integers(1, 5)) for _ in range(3))
    batch = draw(st.lists(st.integers(1, 3), max_size=2).map(tuple))
    left = (k,) if draw(st.booleans()) and not batch else (*broadcastable(draw, batch), m, k)
    right = (k,) if draw(st.booleans()) and not batch else (*batch, k, n)
    return Application("MatMul", (array(draw, left), array(draw, right)))


def _gemm(draw: Draw) -> Application:
    m, k, n = (draw(st.integers(1, 5)) for _ in range(3))
    attributes = {
        "alpha": draw(st.sampled_from([1.0, 0.5, -2.0])),
        "beta": draw(st.sampled_from([1.0, 0.25])),
        "transA": draw(st.integers(0, 1)),
        "transB": draw(st.integers(0, 1)),
    }
    operands = [
        array(draw, (k, m) if attributes["transA"] else (m, k)),
        array(draw, (n, k) if attributes["transB"] else (k, n)),
    ]
    if draw(st.booleans()):
        operands.append(array(draw, broadcastable(draw, (m, n))))
    return Application("Gemm", tuple(operands), attributes, (), attributes)


def _reduce(op: str) -> Callable[[Draw], Application]:
    def make(draw: Draw) -> Application:
        shape = draw(PROPER)
        axes = axes_of(draw, len(shape), least=1)
        keepdims = draw(st.integers(0, 1))
        x = array(draw, shape, draw(st.sampled_from(NUMBERS)))
        attributes = {"axes": axes, "keepdims": keepdims}
        if op == "ReduceSum" or axes:
            parameters: tuple[np.ndarray | None, ...] = (np.array(axes, np.int64),)
        else:
            parameters = ()
        return Application(op, (x,), attributes, parameters, {"keepdims": keepdims})

    return make


def _softmax(draw: Draw) -> Application:
    shape = draw(PROPER.filter(len))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    return Application("Softmax", (array(draw, shape),), {"axis": axis}, (), {"axis": axis})


def _layer_norm(draw: Draw) -> Application:
    shape = draw(PROPER.filter(len))
    axis = draw(st.integers(-len(shape), -1))
    operands = [array(draw, shape), array(draw, shape[axis:])]
    if draw(st.booleans()):
        operands.append(array(draw, shape[axis:]))
    attributes = {"axis": axis, "epsilon": draw(st.sampled_from([1e-5, 1e-2]))}
    return Application("LayerNormalization", tuple(operands), attributes, (), attributes)


def _rms_norm(draw: Draw) -> Application:
    shape = draw(PROPER.filter(len))
    axis = draw(st.integers(-len(shape), -1))
    operands = (array(draw, shape), array(draw, shape[axis:]))
    attributes = {"axis": axis, "epsilon": draw(st.sampled_from([1e-5, 1e-2]))}
    return Application("RMSNormalization", operands, attributes, (), attributes)


def _batch_norm(draw: Draw) -> Application:
    shape = (draw(st.integers(1, 3)), draw(st.integers(1, 4)), *draw(PROPER)[:2])
    channels = shape[1:2]
    parameters = [array(draw, channels), array(draw, channels), array(draw, channels)]
    operands = (array(draw, shape), *parameters, array(draw, channels, positive=True))
    attributes = {"epsilon": draw(st.sampled_from([1e-5, 1e-2]))}
    return Application("BatchNormalization", operands, attributes, (), attributes)


def _gelu(draw: Draw) -> Application:
    attributes = {"approximate": draw(st.sampled_from(["none", "tanh"]))}
    return Application("Gelu", (array(draw, draw(SHAPES)),), attributes, (), attributes)


def _attention(draw: Draw) -> Application:
    b, h, t, s, d, e = (draw(st.integers(1, 4)) for _ in range(6))
    operands = [array(draw, shape) for shape in ((b, h, t, d), (b, h, s, d), (b, h, s, e))]
    if draw(st.booleans()):
        operands.append(array(draw, (*broadcastable(draw, (b, h)), t, s)))
    attributes = {"scale": draw(st.sampled_from([0.25, 1.0, 3.0]))}
    return Application("Attention", tuple(operands), attributes, (), attributes)


def _pad(draw: Draw) -> Application:
    shape = draw(SHAPES.filter(len))
    pads = tuple(draw(st.integers(0, 3)) for _ in range(2 * len(shape)))
    value = draw(st.sampled_from([0.0, -1.5]))
    x = array(draw, shape, draw(st.sampled_from(FLOATS)))
    attributes = {"mode": "constant", "pads": pads, "constant_value": value}
    parameters = (np.array(pads, np.int64), np.array(value, x.dtype))
    return Application("Pad", (x,), attributes, parameters, {"mode": "constant"})


def _transpose(draw: Draw) -> Application:
    shape = draw(SHAPES)
    perm = tuple(draw(st.permutations(range(len(shape)))))
    return Application("Transpose", (array(draw, shape),), {"perm": perm}, (), {"perm": perm})


def _reshape(draw: Draw) -> Application:
    shape = draw(PROPER)
    target = list(draw(st.permutations(shape)))
    if draw(st.booleans()) and len(target) > 1:
        target[:2] = [target[0] * target[1]]
    elif draw(st.booleans()):
        target.insert(draw(st.integers(0, len(target))), 1)
    if target and draw(st.booleans()):
        target[draw(st.integers(0, len(target) - 1))] = -1
    copied = [i for i, d in enumerate(target) if i < len(shape) and d == shape[i]]
    if copied and draw(st.booleans()):
        target[copied[0]] = 0
    return Application("Reshape", (array(draw, shape),), {"shape": tuple(target)}, (np.array(target, np.int64),))


def _concat(draw: Draw) -> Application:
    shape = draw(SHAPES.filter(len))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    shapes = [
        tuple(draw(st.integers(0, 3)) if i == axis % len(shape) else d for i, d in enumerate(shape))
        for _ in range(draw(st.integers(1, 3)))
    ]
    return Application("Concat", tuple(array(draw, s) for s in shapes), {"axis": axis}, (), {"axis": axis})


def _split(draw: Draw) -> Application:
    sizes = tuple(draw(st.lists(st.integers(0, 3), min_size=1, max_size=3)))
    shape = draw(SHAPES.filter(len))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    shape = tuple(sum(sizes) if i == axis % len(shape) else d for i, d in enumerate(shape))
    x = array(draw, shape)
    attributes = {"axis": axis, "split": sizes}
    return Application("Split", (x,), attributes, (np.array(sizes, np.int64),), {"axis": axis}, len(sizes))


def _slice(draw: Draw) -> Application:
    shape = draw(PROPER.filter(len))
    axes = axes_of(draw, len(shape), least=1)
    near = st.integers(-6, 6)
    far = {1: st.sampled_from([2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]), -1: st.sampled_from([-(2**31), -(2**63)])}
    steps = tuple(draw(st.sampled_from([1, 2, -1, -3])) for _ in axes)
    starts = tuple(draw(near) for _ in steps)
    ends = tuple(draw(near | far[1 if s > 0 else -1]) for s in steps)
    attributes = {"axes": axes, "starts": starts, "ends": ends, "steps": steps}
    parameters = tuple(np.array(attributes[k], np.int64) for k in ("starts", "ends", "axes", "steps"))
    return Application("Slice", (array(draw, shape),), attributes, parameters)


def _gather(draw: Draw) -> Application:
    shape = draw(PROPER.filter(len))
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    size = shape[axis]
    where = draw(st.lists(st.integers(0, 3), max_size=2).map(tuple))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    indices = np.asarray(rng.integers(-size, size, where), draw(st.sampled_from(["int32", "int64"])))
    return Application("Gather", (array(draw, shape), indices), {"axis": axis}, (), {"axis": axis})


def _unsqueeze(draw: Draw) -> Application:
    shape = draw(SHAPES)
    axes = axes_of(draw, len(shape) + 2)[:2]
    rank = len(shape) + len(axes)
    assume(len({a % rank for a in axes if -rank <= a < rank}) == len(axes))
    return Application("Unsqueeze", (array(draw, shape),), {"axes": axes}, (np.array(axes, np.int64),))


def _squeeze(draw: Draw) -> Application:
    shape = draw(SHAPES.filter(len))
    axes = axes_of(draw, len(shape), least=1)
    shape = tuple(1 if i in {a % len(shape) for a in axes} else d for i, d in enumerate(shape))
    return Application("Squeeze", (array(draw, shape),), {"axes": axes}, (np.array(axes, np.int64),))


def _flatten(draw: Draw) -> Application:
    shape = draw(SHAPES)
    axis = draw(st.integers(-len(shape), len(shape)))
    return Application("Flatten", (array(draw, shape),), {"axis": axis}, (), {"axis": axis})


_CODES = {
    "float32": onnx.TensorProto.FLOAT,
    "float64": onnx.TensorProto.DOUBLE,
    "float16": onnx.TensorProto.FLOAT16,
    "int32": onnx.TensorProto.INT32,
    "int64": onnx.TensorProto.INT64,
    "bool": onnx.TensorProto.BOOL,
}


def _cast(draw: Draw) -> Application:
    to = draw(st.sampled_from(sorted(_CODES)))
    x = array(draw, draw(SHAPES), draw(st.sampled_from(NUMBERS)))
    return Application("Cast", (x,), {"to": to}, (), {"to": int(_CODES[to])})


def _quantised(op: str) -> Callable[[Draw], Application]:
    """Numbers far outside of the range among them, which saturate."""

    def make(draw: Draw) -> Application:
        dtype, scale = draw(st.sampled_from(sorted(QUANTISED))), draw(st.sampled_from([0.5, 0.017, 1e-30]))
        zero_point = draw(st.integers(*QUANTISED[dtype]))
        x, scale = array(draw, draw(SHAPES), "float32"), float(np.float32(scale))
        attributes: dict[str, AttributeValue] = {"scale": scale, "zero_point": zero_point}
        parameters = (np.array(scale, np.float32), np.array(zero_point, dtype))
        if op == "QuantizeLinear":
            magnitude = draw(st.sampled_from([40.0, 1e4])) * scale
            return Application(op, (np.asarray(x * magnitude, np.float32),), {**attributes, "to": dtype}, parameters)
        return Application(op, (np.asarray(np.clip(x * 40, *QUANTISED[dtype]), dtype),), attributes, parameters)

    return make


def _fused_matmul(draw: Draw) -> Application:
    m, k, n = (draw(st.integers(1, 4)) for _ in range(3))
    batch = draw(st.lists(st.integers(1, 3), max_size=2).map(tuple))
    attributes = {
        "alpha": draw(st.sampled_from([1.0, -0.5])),
        "transA": draw(st.integers(0, 1)),
        "transB": draw(st.integers(0, 1)),
    }
    a = (*broadcastable(draw, batch), *((k, m) if attributes["transA"] else (m, k)))
    b = (*batch, *((n, k) if attributes["transB"] else (k, n)))
    dtype = draw(st.sampled_from(FLOATS))
    operands = (array(draw, a, dtype), array(draw, b, dtype))
    return Application("com.microsoft.FusedMatMul", operands, attributes, (), attributes)


def _bias_gelu(draw: Draw) -> Application:
    shape = draw(PROPER.filter(len))
    return Application("com.microsoft.BiasGelu", (array(draw, shape), array(draw, shape[-1:])))


def _quick_gelu(draw: Draw) -> Application:
    attributes = {"alpha": draw(st.sampled_from([1.0, float(np.float32(1.702)), -0.5]))}
    x = array(draw, draw(SHAPES), draw(st.sampled_from(FLOATS)))
    return Application("com.microsoft.QuickGelu", (x,), attributes, (), attributes)


def _skip_norm(op: str, most: int) -> Callable[[Draw], Application]:
    def make(draw: Draw) -> Application:
        shape = (*draw(st.sampled_from([(2,), (1, 3), (2, 2)])), draw(st.integers(1, 4)))
        parameters = [array(draw, shape[-1:]) for _ in range(draw(st.integers(1, most)))]
        attributes = {"epsilon": draw(st.sampled_from([1e-5, 1e-2]))}
        operands = (array(draw, shape), array(draw, shape), *parameters)
        return Application(op, operands, attributes, (), attributes)

    return make


def _rectified(op: str, make: Callable[[Draw], Application]) -> Callable[[Draw], Application]:
    def made(draw: Draw) -> Application:
        plain, relu = make(draw), {"activation": "Relu"}
        operands = tuple(x.astype(np.float32) for x in plain.operands)
        attributes = {name: value for name, value in plain.attributes.items() if name != "kernel_shape"}
        return Application(op, operands, {**attributes, **relu}, (), {**plain.written, **relu})

    return made


def _constant(draw: Draw) -> Application:
    numbers = tuple(float(v) for v in array(draw, (draw(st.integers(1, 4)),), "float32"))
    return Application("Constant", (), {"value_floats": numbers}, (), {"value_floats": numbers})


DRAWN: dict[str, Callable[[Draw], Application]] = {
    "Add": _elementwise("Add"),
    "Sub": _elementwise("Sub"),
    "Mul": _elementwise("Mul"),
    "Div": _elementwise("Div"),
    "Sum": _elementwise("Sum", count=3, dtypes=FLOATS),
    "Pow": _pow,
    "Clip": _clip,
    "Relu": _unary("Relu", dtypes=("float32", "float64", "int32")),
    "Neg": _unary("Neg", dtypes=NUMBERS),
    "Reciprocal": _unary("Reciprocal", positive=True),
    "Exp": _unary("Exp"),
    "Erf": _unary("Erf", dtypes=("float32",)),
    "Tanh": _unary("Tanh"),
    "Sqrt": _unary("Sqrt", positive=True),
    "Log": _unary("Log", positive=True),
    "Sigmoid": _unary("Sigmoid"),
    "MatMul": _matmul,
    "Gemm": _gemm,
    "ReduceSum": _reduce("ReduceSum"),
    "ReduceMean": _reduce("ReduceMean"),
    "Softmax": _softmax,
    "LayerNormalization": _layer_norm,
    "Transpose": _transpose,
    "Reshape": _reshape,
    "Concat": _concat,
    "Split": _split,
    "Slice": _slice,
    "Gather": _gather,
    "Unsqueeze": _unsqueeze,
    "Squeeze": _squeeze,
    "Flatten": _flatten,
    "Identity": _unary("Identity", dtypes=NUMBERS),
    "Cast": _cast,
    "QuantizeLinear": _quantised("QuantizeLinear"),
    "DequantizeLinear": _quantised("DequantizeLinear"),
    "Constant": _constant,
    "Pad": _pad,
    "BatchNormalization": _batch_norm,
    "Gelu": _gelu,
    "Attention": _attention,
    "RMSNormalization": _rms_norm,
    **windows.DRAWN,
    "com.microsoft.FusedMatMul": _fused_matmul,
    "com.microsoft.Gelu": _unary("com.microsoft.Gelu", dtypes=("float32",)),
    "com.microsoft.BiasGelu": _bias_gelu,
    "com.microsoft.QuickGelu": _quick_gelu,
    "com.microsoft.SkipLayerNormalization": _skip_norm("com.microsoft.SkipLayerNormalization", 3),
    "com.microsoft.SkipSimplifiedLayerNormalization": _skip_norm("com.microsoft.SkipSimplifiedLayerNormalization", 2),
    "com.microsoft.FusedConv": _rectified("com.microsoft.FusedConv", windows.DRAWN["Conv"]),
    "com.microsoft.FusedGemm": _rectified("com.microsoft.FusedGemm", _gemm),
}


def test_every_operator_is_drawn() -> None:
    assert DRAWN.keys() | {"Constant"} == OPERATORS.keys()  # which ONNX Runtime takes for a weight


def _tolerance(case: Application, expected: np.ndarray) -> float:
    """Zero for integers, for what they stand for, and for operators that only move elements."""
    operator = OPERATORS[case.op]
    computes = operator.flops(case.attributes, case.types, case.types) and not operator.traits.dequantises
    if expected.dtype.kind != "f" or not computes:
        return 0.0
    products = case.op.endswith(("MatMul", "Gemm", "Conv"))
    terms = max((int(x.shape[-1]) if x.ndim else 1) for x in case.operands) if products else 0
    longest = max(terms, *(x.size for x in case.operands), FUNCTION_ROUNDINGS)
    size = max([1.0, *(float(np.abs(x).max(initial=0)) for x in (*case.operands, expected) if x.dtype.kind == "f")])
    return float(np.finfo(expected.dtype).eps) * longest * FUNCTION_ROUNDINGS * size**2


@pytest.mark.parametrize("op", DRAWN)
@settings(max_examples=40)
@given(data=st.data())
def test_values_and_types(op: str, data: st.DataObject) -> None:
    case = data.draw(st.composite(lambda draw: DRAWN[op](draw))())
    expected = case.by_onnx_runtime()
    actual = case.evaluated()
    inferred = infer(op, case.attributes, case.types)
    declared = [from_type_proto(o.type) for o in case.model().graph.output]
    assert len(expected) == len(actual) == len(inferred)
    for theirs, ours, kind, by_onnx in zip(expected, actual, inferred, declared, strict=True):
        assert (kind.dtype, kind.shape) == (theirs.dtype.name, theirs.shape)
        assert by_onnx is not None
        assert kind.dtype == by_onnx.dtype
        assert by_onnx.shape is None or all(
            d is None or isinstance(d, str) or d == k for d, k in zip(by_onnx.shape, theirs.shape, strict=True)
        )
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=_tolerance(case, theirs))


@pytest.mark.parametrize("op", ["Gelu", "RMSNormalization", "Attention"])
@settings(max_examples=10)
@given(data=st.data())
def test_onnx_own_reference_agrees(op: str, data: st.DataObject) -> None:
    """A second opinion on the operators that are newest, and that ONNX defines by others."""
    case = data.draw(st.composite(lambda draw: DRAWN[op](draw))())
    feeds = {f"x{i}": x for i, x in enumerate(case.operands)}
    (theirs,) = ReferenceEvaluator(case.model()).run(None, feeds)
    np.testing.assert_allclose(case.evaluated()[0], theirs, rtol=0, atol=_tolerance(case, theirs))


FAR = np.array([-np.inf, -1e30, -100, -20, -0.0, 0.0, 20, 88, 100, 1e30, np.inf, np.nan], np.float32)


@pytest.mark.parametrize(
    "op", ["Relu", "Clip", "Neg", "Exp", "Erf", "Tanh", "Sigmoid", "Sqrt", "Log", "Reciprocal", "Identity"]
)
def test_far_values(op: str) -> None:
    """Infinities, NaN, overflow: no warning, and ONNX Runtime's answer."""
    case = Application(op, (FAR,))
    theirs, ours = case.by_onnx_runtime()[0], case.evaluated()[0]
    tiny = float(np.finfo(np.float32).tiny)
    roundings = 4 * float(np.finfo(np.float32).eps)
    # ONNX Runtime's logistic function is a polynomial of bounded absolute error: it is 0 at -20.
    np.testing.assert_allclose(ours[:-1], theirs[:-1], rtol=roundings, atol=roundings if op == "Sigmoid" else tiny)
    if op not in ("Relu", "Tanh", "Erf", "Sigmoid"):  # ONNX Runtime's vector kernels may swallow a NaN
        assert np.isnan(ours[-1]) == np.isnan(theirs[-1])
    assert np.isnan(ours[-1])


@pytest.mark.parametrize("op", ["Erf", "Tanh", "Exp", "Sqrt", "Softmax", "ReduceMean", "LayerNormalization"])
def test_half_precision_stays_half_precision(op: str) -> None:
    x = np.abs(np.random.default_rng(0).standard_normal((4, 64))).astype(np.float16)
    attributes: dict[str, Any] = {
        "Softmax": {"axis": -1},
        "ReduceMean": {"axes": (-1,), "keepdims": 0},
        "LayerNormalization": {"axis": -1, "epsilon": 1e-5},
    }.get(op, {})
    operands = (x, x[0]) if op == "LayerNormalization" else (x,)
    half = Application(op, operands, attributes).evaluated()[0]
    exact = Application(op, tuple(o.astype(np.float64) for o in operands), attributes).evaluated()[0]
    assert half.dtype == np.float16
    assert np.abs(half - exact).max() <= 8 * np.finfo(np.float16).eps * np.abs(exact).max()


def test_a_mean_of_many_halves_does_not_overflow() -> None:
    x = np.full((1, 100_000), 2, np.float16)
    assert Application("ReduceMean", (x,), {"axes": (-1,), "keepdims": 0}).evaluated()[0].tolist() == [2]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integer_division_and_mean_go_towards_zero(dtype: str) -> None:
    a, b = np.array([7, -7, 7, -7, 0], dtype), np.array([2, 2, -2, -2, 3], dtype)
    case = Application("Div", (a, b))
    assert case.evaluated()[0].tolist() == case.by_onnx_runtime()[0].tolist() == [3, -3, -3, 3, 0]
    mean = Application(
        "ReduceMean", (np.array([-7, 0], dtype),), {"axes": (0,), "keepdims": 0}, (np.array([0]),), {"keepdims": 0}
    )
    assert mean.evaluated()[0].item() == mean.by_onnx_runtime()[0].item()
