"""Elementwise operators. An elementary function counts as one floating-point operation an element."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.domain import Array, Domain, FloatDomain
from rlflow.ops.schema import Operator, Types, broadcast, elementwise_flops, only, same_dtype, shape_of


def _infer_broadcast(name: str) -> Callable[[Attributes, Types], tuple[TensorType, ...]]:
    def infer(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
        return (TensorType(same_dtype(inputs, name), broadcast([shape_of(t, name) for t in inputs], name)),)

    return infer


def _infer_same(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    return (inputs[0],)


def _binary(name: str, since: int, apply: Callable[[Domain, Array, Array], Array], commutative: bool) -> Operator:
    return Operator(
        name,
        _infer_broadcast(name),
        lambda domain, attributes, x: (apply(domain, x[0], x[1]),),
        since,
        arity=(2, 2),
        flops=elementwise_flops(1),
        commutative=commutative,
    )


def _unary(name: str, since: int, apply: Callable[[Domain, Array], Array]) -> Operator:
    return Operator(
        name,
        _infer_same,
        lambda domain, attributes, x: (apply(domain, x[0]),),
        since,
        arity=(1, 1),
        flops=elementwise_flops(1),
    )


def _sigmoid(domain: Domain, x: Array) -> Array:
    one = domain.constant(1.0)
    return domain.reciprocal(domain.add(domain.exp(domain.negate(x)), one))


def _sum(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    total = x[0]
    for term in x[1:]:
        total = domain.add(total, term)
    return (total,)


def _infer_power(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    if not inputs[0].is_float:
        raise TypeInferenceError(f"Pow: integer powers of {inputs[0].dtype} are not understood")
    return (inputs[0],)


def _power(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    exponent = attributes["exponent"]
    if exponent == 2.0:
        return (domain.multiply(x[0], x[0]),)
    if exponent == 3.0:
        return (domain.multiply(domain.multiply(x[0], x[0]), x[0]),)
    if exponent == 0.5:
        return (domain.function("sqrt", x[0]),)
    if isinstance(domain, FloatDomain):
        return ((x[0] ** exponent).astype(x[0].dtype),)
    raise TypeInferenceError(f"Pow: no exact meaning for the exponent {exponent!r}")


_CLIPPED = ("float16", "float32", "float64")


def _infer_clip(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    only(attributes, ("min", "max"), "Clip")
    if inputs[0].dtype not in _CLIPPED:
        raise TypeInferenceError(f"Clip: bounds of {inputs[0].dtype} are not understood")
    return (inputs[0],)


def _clip(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    low, high = map(attributes.get, ("min", "max"))
    return (domain.clip(x[0], low, high),)  # type: ignore[arg-type]


OPERATORS = (
    _binary("Add", 7, lambda d, a, b: d.add(a, b), commutative=True),
    _binary("Sub", 7, lambda d, a, b: d.subtract(a, b), commutative=False),
    _binary("Mul", 7, lambda d, a, b: d.multiply(a, b), commutative=True),
    _binary("Div", 7, lambda d, a, b: d.divide(a, b), commutative=False),
    Operator(
        "Sum",
        _infer_broadcast("Sum"),
        _sum,
        since=8,
        arity=(1, 64),
        flops=lambda attributes, inputs, outputs: (len(inputs) - 1) * outputs[0].elements,
        commutative=True,
    ),
    Operator("Pow", _infer_power, _power, since=7, arity=(1, 1), flops=elementwise_flops(1)),
    Operator("Clip", _infer_clip, _clip, since=6, arity=(1, 1), flops=elementwise_flops(2)),
    _unary("Relu", 6, lambda d, x: d.relu(x)),
    _unary("Neg", 6, lambda d, x: d.negate(x)),
    _unary("Reciprocal", 6, lambda d, x: d.reciprocal(x)),
    _unary("Exp", 6, lambda d, x: d.exp(x)),
    _unary("Erf", 9, lambda d, x: d.function("erf", x)),
    _unary("Tanh", 6, lambda d, x: d.function("tanh", x)),
    _unary("Sqrt", 6, lambda d, x: d.function("sqrt", x)),
    _unary("Log", 6, lambda d, x: d.function("log", x)),
    _unary("Sigmoid", 6, _sigmoid),
)
