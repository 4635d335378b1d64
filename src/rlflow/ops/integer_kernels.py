"""The part that each operator plays where ONNX Runtime computes with whole numbers (`cost/integer_kernels.py`).

    INTEGER_KERNELS["Sigmoid"]          Computes()

Between DequantizeLinear and QuantizeLinear it takes another kernel for an operator, which reads and makes bytes: a
QLinearMatMul for a MatMul, the same Transpose for a Transpose. The parts are those of its selectors for the CPU at its
highest level, and no part of an operator's meaning; tests/ops/test_integer_kernels.py asks ONNX Runtime for each. An
operator that is not here computes with floats, between two kernels that convert.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Moves:
    """Moves bytes where it reads what is dequantised and all that it makes is quantised alike.

    `carries`: ONNX Runtime sees through it in both directions, so that one of the two is enough.
    """

    carries: bool = False


@dataclass(frozen=True)
class Computes:
    """Computes with bytes where all operands, from number `first` on, are dequantised and the result is quantised.

    - `weights`: the second operand may be of another type of bytes than the first.
    - `unsigned`: the first one must not be int8.
    - `to_floats`: the result may stay in floats, if all operands are bytes.
    - `quantises_constants`: operands but the first may be constants in floats, which ONNX Runtime quantises itself.
    """

    first: int = 0
    weights: bool = False
    unsigned: bool = False
    to_floats: bool = False
    quantises_constants: bool = False


@dataclass(frozen=True)
class Clips:
    """Is left out before a QuantizeLinear whose range it does not narrow."""


@dataclass(frozen=True)
class Converts:
    """Makes bytes of floats, or floats of bytes."""

    to_floats: bool


Part = Moves | Computes | Clips | Converts

INTEGER_KERNELS: Mapping[str, Part] = {
    **dict.fromkeys(("MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"), Moves(carries=True)),
    **dict.fromkeys(("DepthToSpace", "Expand", "Flatten", "Gather", "GatherElements", "Resize", "Tile"), Moves()),
    **dict.fromkeys(("ReduceMax", "ReduceMin", "Split"), Moves()),
    **dict.fromkeys(("Add", "Concat", "Mul"), Computes()),
    **dict.fromkeys(("AveragePool", "GlobalAveragePool", "LeakyRelu", "Sigmoid", "Softmax"), Computes()),
    "Where": Computes(first=1),
    "Conv": Computes(weights=True, unsigned=True, quantises_constants=True),
    "MatMul": Computes(weights=True, unsigned=True, to_floats=True),
    "Gemm": Computes(weights=True, to_floats=True, quantises_constants=True),
    **dict.fromkeys(("Clip", "Relu"), Clips()),
    "QuantizeLinear": Converts(to_floats=False),
    "DequantizeLinear": Converts(to_floats=True),
}
"""Operators by their qualified names."""
