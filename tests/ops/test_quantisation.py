"""Quantisation by one scale: the round trip of every byte, ONNX Runtime's bits, and what is left alone."""

import numpy as np
import onnx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from onnx import parser

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes
from rlflow.ir.tensor_type import TensorType
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.ops.algebra import QUANTISED
from rlflow.ops.domain import FloatDomain
from rlflow.ops.field import FieldDomain
from rlflow.ops.registry import OPERATORS
from rlflow.runtime.session import SETTINGS, open_session, run

LEAST, MOST = float(np.finfo(np.float32).tiny), float(np.float32(np.finfo(np.float32).max / 255))
SCALES = st.floats(LEAST, MOST, width=32) | st.floats(2.0**-20, 4.0, width=32)
DTYPES = st.sampled_from(sorted(QUANTISED))


def every_byte(dtype: str) -> np.ndarray:
    low, high = QUANTISED[dtype]
    return np.arange(low, high + 1).astype(dtype)


def dequantised(x: np.ndarray, scale: float, zero_point: int) -> np.ndarray:
    attributes = {"scale": scale, "zero_point": zero_point}
    (result,) = OPERATORS["DequantizeLinear"].evaluate(FloatDomain(), attributes, [x])
    return result  # type: ignore[no-any-return]


def quantised(x: np.ndarray, scale: float, zero_point: int, to: str) -> np.ndarray:
    attributes = {"scale": scale, "zero_point": zero_point, "to": to}
    (result,) = OPERATORS["QuantizeLinear"].evaluate(FloatDomain(), attributes, [x])
    return result  # type: ignore[no-any-return]


@given(dtype=DTYPES, scale=SCALES, zero=st.integers(0, 255))
@example(dtype="int8", scale=LEAST, zero=255)
@example(dtype="uint8", scale=MOST, zero=0)
def test_every_byte_comes_back(dtype: str, scale: float, zero: int) -> None:
    """At the ends of the range of scales as well, and from zero points at the ends."""
    x, zero_point = every_byte(dtype), QUANTISED[dtype][0] + zero
    numbers = dequantised(x, scale, zero_point)
    assert numbers.dtype == np.float32
    assert np.isfinite(numbers).all()
    assert quantised(numbers, scale, zero_point, dtype).tobytes() == x.tobytes()


def test_bytes_do_not_come_back_by_a_scale_that_is_too_large() -> None:
    """So that the bound is one: by twice the largest scale, products overflow."""
    x = every_byte("uint8")
    with np.errstate(over="ignore"):
        assert quantised(dequantised(x, 2 * MOST, 0), 2 * MOST, 0, "uint8").tobytes() != x.tobytes()


@pytest.mark.parametrize("scale", [0.0, -0.5, LEAST / 2, 1.01 * MOST, float("inf"), float("nan")])
@pytest.mark.parametrize("operator", ["QuantizeLinear", "DequantizeLinear"])
def test_other_scales_are_not_understood(operator: str, scale: float) -> None:
    dtype = {"QuantizeLinear": "float32", "DequantizeLinear": "int8"}[operator]
    with pytest.raises(TypeInferenceError, match="scale"):
        OPERATORS[operator].infer({"scale": scale, "zero_point": 0, "to": "int8"}, [TensorType(dtype, (2,))])


@pytest.mark.parametrize(("dtype", "zero_point"), [("int8", 128), ("uint8", -1), ("int8", 1.0)])
def test_a_zero_point_is_of_the_type_of_the_bytes(dtype: str, zero_point: float) -> None:
    with pytest.raises(TypeInferenceError, match="zero point"):
        OPERATORS["DequantizeLinear"].infer({"scale": 0.5, "zero_point": zero_point}, [TensorType(dtype, (2,))])


ROUND_TRIP = """
    <ir_version: 8, opset_import: ["" : {opset}]>
    trip ({dtype}[256] x) => ({dtype}[256] y) <float scale = {{{scale}}}, {dtype} zero = {{{zero}}}> {{
        numbers = DequantizeLinear(x, scale, zero)
        y = QuantizeLinear(numbers, scale, zero)
    }}"""


@pytest.mark.parametrize("scale", [LEAST, 1e-30, 0.0173, 0.5, 1.0, 3e30, MOST])
@pytest.mark.parametrize("dtype", sorted(QUANTISED))
def test_every_byte_comes_back_in_onnx_runtime(dtype: str, scale: float) -> None:
    model = parser.parse_model(ROUND_TRIP.format(opset=13, dtype=dtype, scale=repr(scale), zero=QUANTISED[dtype][1]))
    for setting in SETTINGS:
        assert run(open_session(model, setting), {"x": every_byte(dtype)})["y"].tobytes() == every_byte(dtype).tobytes()


@given(dtype=DTYPES, scale=SCALES, zero=st.integers(0, 255), seed=st.integers(0, 2**32 - 1))
def test_the_field_knows_that_whole_numbers_stay(dtype: str, scale: float, zero: int, seed: int) -> None:
    """And that others do not: what is rounded is another number but for one element in thousands."""
    domain, rng = FieldDomain([seed]), np.random.default_rng(seed)
    low, high = QUANTISED[dtype]
    attributes: Attributes = {"scale": scale, "zero_point": low + zero, "to": dtype}
    quantise, dequantise = (OPERATORS[name].evaluate for name in ("QuantizeLinear", "DequantizeLinear"))
    x = domain.draw((64,), rng).whole(low, high)
    (numbers,) = dequantise(domain, attributes, [x])
    assert (quantise(domain, attributes, [numbers])[0].residue == x.residue).all()
    any_numbers = domain.draw((64,), rng)
    (back,) = dequantise(domain, attributes, quantise(domain, attributes, [any_numbers]))
    assert (back.residue == any_numbers.residue).mean() < 0.1


MODELS = {
    "bytes": "y = QuantizeLinear(x, scale, zero)",
    "no zero point": "y = QuantizeLinear(x, scale)",
    "along an axis": "y = QuantizeLinear<axis = 0>(x, scales, zeros)",
    "computed scale": "t = Exp(scale) y = QuantizeLinear(x, t, zero)",
}
WEIGHTS = """float scale = {0.02}, uint8 zero = {7}, float[2] scales = {0.02, 0.03}, uint8[2] zeros = {7, 8},
    int8[3, 2] weights = {-128, -1, 0, 1, 2, 127}, int8 signed = {-3}"""


def model(opset: int, body: str, inputs: str = "float[2, 3] x", output: str = "uint8[2, 3] y") -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> q ({inputs}) => ({output}) <{WEIGHTS}> {{ {body} }}'
    return parser.parse_model(text)


@pytest.mark.parametrize("opset", [10, 13, 19, 21, 23])
@pytest.mark.parametrize("name", MODELS)
def test_what_is_read_is_written_with_the_same_meaning(name: str, opset: int) -> None:
    if opset < 13 and "axis" in name:
        pytest.skip("the attribute came with opset 13")
    original = model(opset, MODELS[name])
    graph = from_onnx(original)
    (node,) = (n for n in graph.nodes.values() if n.op == "QuantizeLinear")
    assert node.is_opaque == (name in ("along an axis", "computed scale"))
    again = to_onnx(graph)
    onnx.checker.check_model(again, full_check=True)
    x = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    one, other = (run(open_session(each, "as_written"), {"x": x})["y"] for each in (original, again))
    assert one.tobytes() == other.tobytes()


def test_weights_are_dequantised_when_the_model_runs() -> None:
    """As floats they would be four times as large, and ONNX Runtime would not multiply bytes."""
    body = "w = DequantizeLinear(weights, scale, signed) y = MatMul(x, w)"
    again = to_onnx(from_onnx(model(13, body, output="float[2, 2] y")))
    assert [node.op_type for node in again.graph.node] == ["DequantizeLinear", "MatMul"]
    (weights,) = (w for w in again.graph.initializer if list(w.dims) == [3, 2])
    assert weights.data_type == onnx.TensorProto.INT8
