"""Operators of com.microsoft (1) that ONNX Runtime has CPU kernels for, each made of what it stands for.

Their types are those of the kernels, which the operators' own documentation exceeds. No checker knows these operators,
so that every attribute is asked after here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import convolution, elementwise, linear_algebra, reduction
from rlflow.ops.domain import Array, Domain
from rlflow.ops.fused import gelu
from rlflow.ops.onnx_form import OnnxForm
from rlflow.ops.schema import Evaluate, Infer, Operator, Types, elementwise_flops, only, same_dtype, shape_of
from rlflow.ops.traits import Traits

DOMAIN = "com.microsoft"

_PIECES = {
    operator.name: operator
    for family in (convolution, elementwise, linear_algebra, reduction)
    for operator in family.OPERATORS
}
_NARROW = frozenset({"float16", "float32"})


def _check(name: str, attributes: Attributes, known: Sequence[str], inputs: Types) -> None:
    only(attributes, known, name)
    if same_dtype(inputs, name) not in _NARROW:
        raise TypeInferenceError(f"{name}: {inputs[0]} has no kernel")


def _infer_matmul(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    name = f"{DOMAIN}.FusedMatMul"
    only(attributes, ["alpha", "transA", "transB"], name)
    if not isinstance(attributes["alpha"], float) or any(len(shape_of(t, name)) < 2 for t in inputs):
        raise TypeInferenceError(f"{name}: {[str(t) for t in inputs]} times {attributes['alpha']!r}")
    turned = (_turned(t) if attributes[f] else t for t, f in zip(inputs, ("transA", "transB"), strict=True))
    return _PIECES["MatMul"].infer({}, list(turned))


def _turned(operand: TensorType) -> TensorType:
    shape = operand.shape or ()
    return TensorType(operand.dtype, (*shape[:-2], shape[-1], shape[-2]))


def _matmul(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    a, b = (
        domain.structural(lambda v: v.swapaxes(-1, -2), v) if attributes[f] else v
        for v, f in zip(x, ("transA", "transB"), strict=True)
    )
    alpha = attributes["alpha"]
    assert isinstance(alpha, float)
    return (domain.multiply(domain.matmul(a, b), domain.constant(alpha)),)


def _matmul_flops(attributes: Attributes, inputs: Types, outputs: Types) -> int:
    contracted = (inputs[0].shape or (1, 1))[-2 if attributes["transA"] else -1]
    return 2 * outputs[0].elements * (contracted if isinstance(contracted, int) else 1)


def _infer_gelu(name: str) -> Infer:
    def infer(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
        _check(name, attributes, (), inputs)
        if any(shape_of(bias, name) != shape_of(inputs[0], name)[-1:] for bias in inputs[1:]):
            raise TypeInferenceError(f"{name}: a bias {inputs[1]} for {inputs[0]}")
        return (inputs[0],)

    return infer


def _gelu(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    """Return the Gelu of the data, or of its sum with the bias."""
    return (gelu(domain, domain.add(*x) if len(x) > 1 else x[0]),)


def _infer_quick_gelu(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    only(attributes, ["alpha"], f"{DOMAIN}.QuickGelu")
    if not inputs[0].is_float or not isinstance(attributes["alpha"], float):
        raise TypeInferenceError(f"{DOMAIN}.QuickGelu: {attributes['alpha']!r} times {inputs[0]}")
    return (inputs[0],)


def _quick_gelu(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    """x sigmoid(alpha x)."""
    alpha = attributes["alpha"]
    assert isinstance(alpha, float)
    (gate,) = _PIECES["Sigmoid"].evaluate(domain, {}, [domain.multiply(x[0], domain.constant(alpha))])
    return (domain.multiply(x[0], gate),)


def _skipping(op_type: str, base: Operator, flops: int, traits: Traits) -> Operator:
    """The normalisation of a sum: of two tensors (P, Q, N) or (P, N), and of a bias (N) behind all parameters (N)."""
    name, parameters = f"{DOMAIN}.{op_type}", base.arity[1]

    def infer(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
        _check(name, attributes, ["epsilon"], inputs)
        shape = shape_of(inputs[0], name)
        fits = all(shape_of(t, name) == shape[-1:] for t in inputs[2:])
        if len(shape) not in (2, 3) or inputs[1].shape != shape or not fits:
            raise TypeInferenceError(f"{name}: {[str(t) for t in inputs]}")
        return (inputs[0],)

    def evaluate(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
        total = domain.add(x[0], x[1])
        for bias in x[parameters + 1 :]:
            total = domain.add(total, bias)
        return base.evaluate(domain, {**attributes, "axis": -1}, [total, *x[2 : parameters + 1]])

    return Operator(
        name,
        infer,
        evaluate,
        since=1,
        arity=(base.arity[0] + 1, base.arity[1] + 2),
        flops=elementwise_flops(flops),
        defaults={"epsilon": 1e-12},
        traits=traits,
    )


def _rectified(op_type: str, base: Operator, attributes: Sequence[str]) -> Operator:
    """The positive part of what another operator makes."""
    name = f"{DOMAIN}.{op_type}"
    known = {*base.defaults, *attributes, "activation"}

    def infer(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
        _check(name, attributes, sorted(known), inputs)
        if attributes.get("activation") != "Relu":
            raise TypeInferenceError(f"{name}: the activation {attributes.get('activation')!r} is not understood")
        return base.infer(attributes, inputs)

    return Operator(
        name,
        infer,
        _positive_part(base.evaluate),
        since=1,
        arity=base.arity,
        flops=lambda attributes, inputs, outputs: base.flops(attributes, inputs, outputs) + outputs[0].elements,
        defaults=base.defaults,
        required=(*base.required, "activation"),
        optional=base.optional,
        traits=Traits(windowed=base.traits.windowed, accumulates=base.traits.accumulates),
        onnx=base.onnx,
    )


def _positive_part(evaluate: Evaluate) -> Evaluate:
    return lambda domain, attributes, x: tuple(domain.relu(y) for y in evaluate(domain, attributes, x))


_SKIPPING = Traits(typed_like_operand=(0, 3))

OPERATORS = (
    Operator(
        f"{DOMAIN}.FusedMatMul",
        _infer_matmul,
        _matmul,
        since=1,
        arity=(2, 2),
        flops=_matmul_flops,
        defaults={"alpha": 1.0, "transA": 0, "transB": 0},
        traits=Traits(accumulates=True),
        onnx=OnnxForm(harmless={"transBatchA": 0, "transBatchB": 0}),
    ),
    Operator(
        f"{DOMAIN}.Gelu",
        _infer_gelu(f"{DOMAIN}.Gelu"),
        _gelu,
        since=1,
        arity=(1, 1),
        flops=elementwise_flops(5),
        traits=Traits(elementwise=True, typed_like_operand=(0,)),
    ),
    Operator(
        f"{DOMAIN}.BiasGelu",
        _infer_gelu(f"{DOMAIN}.BiasGelu"),
        _gelu,
        since=1,
        arity=(2, 2),
        flops=elementwise_flops(6),
        traits=Traits(typed_like_operand=(0,)),
    ),
    Operator(
        f"{DOMAIN}.QuickGelu",
        _infer_quick_gelu,
        _quick_gelu,
        since=1,
        arity=(1, 1),
        flops=elementwise_flops(3),
        defaults={"alpha": 1.702},
        traits=Traits(elementwise=True, typed_like_operand=(0,)),
    ),
    _skipping("SkipLayerNormalization", _PIECES["LayerNormalization"], 9, replace(_SKIPPING, accumulates=True)),
    _skipping("SkipSimplifiedLayerNormalization", _PIECES["RMSNormalization"], 7, _SKIPPING),
    _rectified("FusedConv", _PIECES["Conv"], ["strides", "pads", "dilations"]),
    _rectified("FusedGemm", _PIECES["Gemm"], []),
)
