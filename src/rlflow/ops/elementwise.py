"""Elementwise operators: each element of the result is computed from the elements in its place, after broadcasting.

Most are one line that names a method of `Domain`: `_binary("Add", ...)`, `_unary("Relu", ...)`, with what shape
inference, pricing and drawn inputs must know of it as traits. An elementary function counts as one floating-point
operation an element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import atanh, exp, inf, log

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes, AttributeValue
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.algebra import Algebra
from rlflow.ops.domain import Array, Domain, FloatDomain
from rlflow.ops.onnx_form import OnnxForm, OnnxNode, Parameter
from rlflow.ops.readings import (
    added,
    bounds,
    defined_on,
    divided,
    divides,
    divisor_at,
    multiplied,
    raised,
    subtracted,
)
from rlflow.ops.schema import Operator, Types, broadcast, elementwise_flops, only, same_dtype, shape_of
from rlflow.ops.traits import Fusion, SizeArithmetic, Traits
from rlflow.ops.turns import before, bends_at, bends_at_bounds, mirrored, parted, scaled, shifted
from rlflow.ops.use import Reading


def _infer_broadcast(name: str) -> Callable[[Attributes, Types], tuple[TensorType, ...]]:
    def infer(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
        return (TensorType(same_dtype(inputs, name), broadcast([shape_of(t, name) for t in inputs], name)),)

    return infer


def _infer_same(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    return (inputs[0],)


def _pointwise(
    *uses: Reading,
    also: Fusion = Fusion.NONE,
    sizes: SizeArithmetic = SizeArithmetic.NONE,
    inexact: bool = False,
    exponential: bool = False,
    cancelling: bool = False,
) -> Traits:
    """The traits that all operators of this family share, and what an operator has besides."""
    return Traits(
        elementwise=True,
        fusion=Fusion.POINTWISE | also,
        size_arithmetic=sizes,
        inexact=inexact,
        exponential=exponential,
        cancelling=cancelling,
        uses=uses,
    )


def _binary(
    name: str,
    apply: Callable[[Domain, Array, Array], Array],
    traits: Traits,
    algebra: Algebra,
    *,
    commutative: bool = False,
) -> Operator:
    return Operator(
        name,
        _infer_broadcast(name),
        lambda domain, attributes, x: (apply(domain, x[0], x[1]),),
        since=7,
        arity=(2, 2),
        flops=elementwise_flops(1),
        commutative=commutative,
        algebra=algebra,
        traits=traits,
    )


def _unary(
    name: str,
    since: int,
    apply: Callable[[Domain, Array], Array],
    traits: Traits,
    algebra: Algebra = Algebra.NUMBERS,
) -> Operator:
    return Operator(
        name,
        _infer_same,
        lambda domain, attributes, x: (apply(domain, x[0]),),
        since,
        arity=(1, 1),
        flops=elementwise_flops(1),
        algebra=algebra,
        traits=traits,
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


def _bounded(attributes: dict[str, AttributeValue], node: OnnxNode) -> Attributes:
    """The bounds; where one is left out before opset 12, it is the end of float32, which is infinite in float16."""
    operand = node.type_of(0)
    if node.opset < 12 and len(attributes) < 2 and operand is not None and operand.dtype != "float32":
        raise TypeInferenceError(f"Clip: a bound is left out for {operand.dtype}")
    return attributes


def _clip(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    low, high = map(attributes.get, ("min", "max"))
    return (domain.clip(x[0], low, high),)  # type: ignore[arg-type]


_SUMMAND = Fusion.SUM | Fusion.NORMALISED
_COUNTED = SizeArithmetic.WHOLE | SizeArithmetic.ROUNDING | SizeArithmetic.DYNAMIC

OPERATORS = (
    _binary(
        "Add",
        lambda d, a, b: d.add(a, b),
        _pointwise(added, shifted(1, 1), also=_SUMMAND, sizes=_COUNTED),
        Algebra.RING,
        commutative=True,
    ),
    _binary(
        "Sub",
        lambda d, a, b: d.subtract(a, b),
        _pointwise(subtracted, shifted(1, -1), sizes=_COUNTED, cancelling=True),
        Algebra.RING,
    ),
    _binary(
        "Mul",
        lambda d, a, b: d.multiply(a, b),
        _pointwise(multiplied, scaled, also=Fusion.SCALE | Fusion.GATED, sizes=_COUNTED),
        Algebra.RING,
        commutative=True,
    ),
    _binary(
        "Div",
        lambda d, a, b: d.divide(a, b),
        _pointwise(divisor_at(1), divides, divided, parted, also=Fusion.SCALE, sizes=_COUNTED, cancelling=True),
        Algebra.NUMBERS,
    ),
    Operator(
        "Sum",
        _infer_broadcast("Sum"),
        _sum,
        since=8,
        arity=(1, 64),
        flops=lambda attributes, inputs, outputs: (len(inputs) - 1) * outputs[0].elements,
        commutative=True,
        traits=replace(_pointwise(also=_SUMMAND), accumulates=True),
    ),
    Operator(
        "Pow",
        _infer_power,
        _power,
        since=7,
        arity=(1, 1),
        required=("exponent",),
        flops=elementwise_flops(1),
        traits=_pointwise(raised, inexact=True),
        onnx=OnnxForm(parameters=(Parameter("exponent", 1, since=7, scalar=True),)),
    ),
    Operator(
        "Clip",
        _infer_clip,
        _clip,
        since=6,
        arity=(1, 1),
        required=("min", "max"),
        flops=elementwise_flops(2),
        traits=_pointwise(bounds, bends_at_bounds),
        onnx=OnnxForm(
            parameters=(
                Parameter("min", 1, since=11, required=False, scalar=True),
                Parameter("max", 2, since=11, required=False, scalar=True),
            ),
            complete=_bounded,
        ),
    ),
    _unary("Relu", 6, lambda d, x: d.relu(x), _pointwise(bends_at(0.0))),
    _unary(
        "Neg",
        6,
        lambda d, x: d.negate(x),
        _pointwise(mirrored, sizes=SizeArithmetic.WHOLE, cancelling=True),
        Algebra.RING,
    ),
    _unary(
        "Reciprocal",
        6,
        lambda d, x: d.reciprocal(x),
        _pointwise(divisor_at(0), before(lambda t: 1 / t), cancelling=True),
    ),
    _unary("Exp", 6, lambda d, x: d.exp(x), _pointwise(before(log), inexact=True, exponential=True)),
    _unary("Erf", 9, lambda d, x: d.function("erf", x), _pointwise(also=Fusion.GATE, inexact=True)),
    _unary("Tanh", 6, lambda d, x: d.function("tanh", x), _pointwise(before(atanh), inexact=True)),
    _unary(
        "Sqrt",
        6,
        lambda d, x: d.function("sqrt", x),
        _pointwise(defined_on(0.0, inf), before(lambda t: t * t), sizes=SizeArithmetic.ROUNDING),
    ),
    _unary("Log", 6, lambda d, x: d.function("log", x), _pointwise(defined_on(0.0, inf), before(exp), inexact=True)),
    _unary("Sigmoid", 6, _sigmoid, _pointwise(before(lambda t: log(t / (1 - t))), inexact=True, exponential=True)),
)
