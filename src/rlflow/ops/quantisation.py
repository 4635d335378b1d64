"""QuantizeLinear and DequantizeLinear by one scale and one zero point, which are attributes here.

    QuantizeLinear(x) {scale=s, zero_point=z, to="int8"}     round(x / s) + z, kept between -128 and 127
    DequantizeLinear(x) {scale=s, zero_point=z}              (x - z) * s

What a byte b stands for, (b - z) * s, is quantised to b again: each operation is off by half a unit in the last place
at most, so that (b - z) * s / s is off by less than 255 * 2**-23, and b - z is the nearest whole number. For that,
(b - z) * s must not overflow, nor a runtime that takes subnormal numbers for 0 make it vanish: scales are normal, and
at most the largest float over 255. Others are not understood. Nor are scales along an axis or in blocks, which weights
have; nor other elements: 4 and 16 bits, which are rare; float8, which is no multiple of a step; int32, which no
QuantizeLinear makes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes, AttributeValue
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.algebra import QUANTISED
from rlflow.ops.domain import Array, Domain, FloatDomain
from rlflow.ops.onnx_form import OnnxForm, OnnxNode, Parameter, Written
from rlflow.ops.readings import whole_range_at
from rlflow.ops.schema import Operator, Types, elementwise_flops
from rlflow.ops.traits import Traits
from rlflow.ops.turns import saturates

_LEAST, _MOST = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max) / 255


def _check(attributes: Attributes, dtype: str) -> None:
    """Raise `TypeInferenceError` for scales, zero points and element types that are not understood."""
    scale, zero_point = attributes["scale"], attributes["zero_point"]
    if dtype not in QUANTISED:
        raise TypeInferenceError(f"quantised numbers of the type {dtype!r} are not understood")
    if not isinstance(scale, float) or not _LEAST <= scale <= _MOST:
        raise TypeInferenceError(f"the scale {scale!r} is no number between {_LEAST:.3g} and {_MOST:.3g}")
    low, high = QUANTISED[dtype]
    if not isinstance(zero_point, int) or not low <= zero_point <= high:
        raise TypeInferenceError(f"the zero point {zero_point!r} is no {dtype}")


def _constants(domain: Domain, attributes: Attributes) -> tuple[Array, Array]:
    """Scale and zero point as numbers of the domain."""
    scale, zero_point = attributes["scale"], attributes["zero_point"]
    return domain.constant(float(scale)), domain.constant(float(zero_point))  # type: ignore[arg-type]


def _infer_quantise(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    if inputs[0].dtype != "float32":
        raise TypeInferenceError(f"QuantizeLinear: numbers of the type {inputs[0].dtype} are not understood")
    dtype = str(attributes["to"])
    _check(attributes, dtype)
    return (TensorType(dtype, inputs[0].shape),)


def _quantise(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    dtype, zero = str(attributes["to"]), attributes["zero_point"]
    scale, zero_point = _constants(domain, attributes)
    low, high = (end - zero for end in QUANTISED[dtype])  # type: ignore[operator]
    steps = domain.add(domain.whole(domain.divide(x[0], scale), low, high), zero_point)  # type: ignore[arg-type]
    return (steps.astype(dtype) if isinstance(domain, FloatDomain) else steps,)


def _infer_dequantise(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    _check(attributes, inputs[0].dtype)
    return (TensorType("float32", inputs[0].shape),)


def _dequantise(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    scale, zero_point = _constants(domain, attributes)
    numbers = x[0].astype(np.float32) if isinstance(domain, FloatDomain) else x[0]
    return (domain.multiply(domain.subtract(numbers, zero_point), scale),)


@dataclass(frozen=True, kw_only=True)
class _ScaledForm(OnnxForm):
    """Reads scale and zero point where each is one number, and writes the zero point in the type of what is quantised:
    that which the attribute `to` names, or that of the operand.
    """

    parameters: tuple[Parameter, ...] = (
        Parameter("scale", 1, since=10, scalar=True, dtypes=("float32",)),
        Parameter("zero_point", 2, since=10, required=False, scalar=True, dtypes=tuple(QUANTISED)),
    )

    def write(self, attributes: Attributes, opset: int, operand: TensorType | None) -> Written:
        written, ((scale, step), (zero_point, zero)) = super().write(attributes, opset, operand)
        dtype = written.pop("to", None) or ("" if operand is None else operand.dtype)
        return Written(written, [(scale, step), (replace(zero_point, dtypes=(str(dtype),)), zero)])


def _typed_as_zero_point(attributes: dict[str, AttributeValue], node: OnnxNode) -> Attributes:
    """The element type of the result, which is that of the zero point; bytes where there is none."""
    given = node.type_of(2)
    return {**attributes, "to": "uint8" if given is None else given.dtype}


_ALONG_AN_AXIS = frozenset({"axis"})
_LATER: dict[str, AttributeValue] = {"block_size": 0, "output_dtype": 0}

OPERATORS = (
    Operator(
        "QuantizeLinear",
        _infer_quantise,
        _quantise,
        since=10,
        arity=(1, 1),
        required=("scale", "to"),
        defaults={"zero_point": 0},
        flops=elementwise_flops(2),
        traits=Traits(elementwise=True, uses=(saturates,)),
        onnx=_ScaledForm(
            ignored=_ALONG_AN_AXIS | {"saturate"}, harmless=_LATER | {"precision": 0}, complete=_typed_as_zero_point
        ),
    ),
    Operator(
        "DequantizeLinear",
        _infer_dequantise,
        _dequantise,
        since=10,
        arity=(1, 1),
        required=("scale",),
        defaults={"zero_point": 0},
        flops=elementwise_flops(2),
        traits=Traits(elementwise=True, dequantises=True, uses=(whole_range_at(0),)),
        onnx=_ScaledForm(ignored=_ALONG_AN_AXIS, harmless=_LATER),
    ),
)
