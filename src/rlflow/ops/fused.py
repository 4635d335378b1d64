"""Operators of ai.onnx that stand for several others: Gelu (20)."""

from __future__ import annotations

from collections.abc import Sequence
from math import pi, sqrt

from rlflow.errors import TypeInferenceError
from rlflow.ir.graph import Attributes
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.domain import Array, Domain
from rlflow.ops.schema import Operator, Types, elementwise_flops

TANH_GELU_SLOPE = sqrt(2 / pi)
TANH_GELU_CUBIC = 0.044715
"""Of the approximation by a hyperbolic tangent (Hendrycks and Gimpel, 2016), which ONNX defines by these numbers."""


def _infer_gelu(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    if attributes["approximate"] not in ("none", "tanh") or not inputs[0].is_float:
        raise TypeInferenceError(f"Gelu: {attributes['approximate']!r} of {inputs[0]} is not understood")
    return (inputs[0],)


def gelu(domain: Domain, x: Array) -> Array:
    """x (1 + erf(x / sqrt(2))) / 2."""
    root = domain.function("sqrt", domain.constant(2.0))
    return _gated(domain, x, domain.function("erf", domain.multiply(x, domain.reciprocal(root))))


def _tanh_gelu(domain: Domain, x: Array) -> Array:
    cube = domain.multiply(domain.multiply(x, x), x)
    inner = domain.add(x, domain.multiply(cube, domain.constant(TANH_GELU_CUBIC)))
    return _gated(domain, x, domain.function("tanh", domain.multiply(inner, domain.constant(TANH_GELU_SLOPE))))


def _gated(domain: Domain, x: Array, gate: Array) -> Array:
    """x (1 + gate) / 2."""
    return domain.multiply(domain.multiply(x, domain.constant(0.5)), domain.add(gate, domain.constant(1.0)))


def _gelu(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    return (_tanh_gelu(domain, x[0]) if attributes["approximate"] == "tanh" else gelu(domain, x[0]),)


OPERATORS = (
    Operator(
        "Gelu",
        _infer_gelu,
        _gelu,
        since=20,
        arity=(1, 1),
        flops=elementwise_flops(5),
        defaults={"approximate": "none"},
    ),
)
