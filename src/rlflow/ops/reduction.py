"""Reductions and normalisations: ReduceSum, ReduceMean, Softmax (13), LayerNormalization (17), RMSNormalization (23),
BatchNormalization (9, of one output: with the statistics of training).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes, AttributeValue
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.ops.domain import Array, Domain
from rlflow.ops.onnx_form import OnnxForm, OnnxNode, Parameter
from rlflow.ops.readings import averages
from rlflow.ops.schema import (
    Infer,
    Operator,
    Types,
    broadcast,
    elementwise_flops,
    ints,
    normal_axis,
    same_dtype,
    shape_of,
)
from rlflow.ops.traits import Fusion, Traits


def _axes(attributes: Attributes, rank: int, name: str) -> tuple[int, ...]:
    axes = attributes.get("axes")
    return tuple(range(rank)) if axes is None else tuple(dict.fromkeys(normal_axis(a, rank, name) for a in ints(axes)))


def _complete(attributes: dict[str, AttributeValue], node: OnnxNode) -> Attributes:
    """Axes, which are all where none are named, or none at all."""
    keep_all = attributes.pop("noop_with_empty_axes", 0)
    if attributes.get("axes"):
        return attributes
    operand = node.type_of(0)
    if keep_all or operand is None or operand.rank is None:
        raise TypeInferenceError("a reduction over no axes")
    return attributes | {"axes": tuple(range(operand.rank))}


def _reduce(name: str, axes_since: int, apply: Callable[[Domain, Array, tuple[int, ...]], Array]) -> Operator:
    """A reduction, whose axes are an operand since opset `axes_since`."""

    def infer(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
        shape = shape_of(inputs[0], name)
        axes = _axes(attributes, len(shape), name)
        kept: list[Dimension] = [1 if i in axes else d for i, d in enumerate(shape)]
        if not attributes["keepdims"]:
            kept = [d for i, d in enumerate(shape) if i not in axes]
        return (TensorType(inputs[0].dtype, tuple(kept)),)

    def evaluate(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
        axes = _axes(attributes, len(x[0].shape), name)
        reduced = apply(domain, x[0], axes) if axes else x[0]
        if not attributes["keepdims"]:
            reduced = domain.structural(lambda v: v.squeeze(axis=axes), reduced)
        return (reduced,)

    return Operator(
        name,
        infer,
        evaluate,
        since=1,
        arity=(1, 1),
        flops=lambda attributes, inputs, outputs: inputs[0].elements,
        defaults={"keepdims": 1},
        required=("axes",),
        traits=Traits(fusion=Fusion.REDUCTION, accumulates=True, uses=(averages,)),
        onnx=OnnxForm(
            parameters=(Parameter("axes", 1, since=axes_since, required=False),), axes="axes", complete=_complete
        ),
    )


def _infer_softmax(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    normal_axis(attributes["axis"], len(shape_of(inputs[0], "Softmax")), "Softmax")
    return (inputs[0],)


def _softmax(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    return (domain.softmax(x[0], normal_axis(attributes["axis"], len(x[0].shape), "Softmax")),)


def _infer_normalised(name: str) -> Infer:
    """Data, normalised over its axes from `axis` on, and parameters that broadcast to these."""

    def infer(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
        shape = shape_of(inputs[0], name)
        same_dtype(inputs, name)
        axis = normal_axis(attributes["axis"], len(shape), name)
        for parameter in inputs[1:]:
            if broadcast([shape_of(parameter, name), shape[axis:]], name) != shape[axis:]:
                raise TypeInferenceError(f"{name}: {parameter} does not scale {shape[axis:]}")
        return (inputs[0],)

    return infer


def _standardised(domain: Domain, attributes: Attributes, x: Array, axes: tuple[int, ...]) -> Array:
    """Over the root of the mean square, and of epsilon with it."""
    epsilon = attributes["epsilon"]
    assert isinstance(epsilon, float)
    square = domain.mean(domain.multiply(x, x), axes)
    return domain.divide(x, domain.function("sqrt", domain.add(square, domain.constant(epsilon))))


def _layer_norm(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    rank = len(x[0].shape)
    axes = tuple(range(normal_axis(attributes["axis"], rank, "LayerNormalization"), rank))
    centred = domain.subtract(x[0], domain.mean(x[0], axes))
    normal = domain.multiply(_standardised(domain, attributes, centred, axes), x[1])
    return (domain.add(normal, x[2]) if len(x) > 2 else normal,)


def _rms_norm(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    rank = len(x[0].shape)
    axes = tuple(range(normal_axis(attributes["axis"], rank, "RMSNormalization"), rank))
    return (domain.multiply(_standardised(domain, attributes, x[0], axes), x[1]),)


def _infer_batch_norm(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    """Data (N, C, ...); scale, shift, mean and variance (C)."""
    shape = shape_of(inputs[0], "BatchNormalization")
    same_dtype(inputs, "BatchNormalization")
    if len(shape) < 2 or any(shape_of(p, "BatchNormalization") != shape[1:2] for p in inputs[1:]):
        raise TypeInferenceError(f"BatchNormalization: {[str(p) for p in inputs[1:]]} for the channels of {inputs[0]}")
    return (inputs[0],)


def _batch_norm(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    epsilon = attributes["epsilon"]
    assert isinstance(epsilon, float)
    channels = (-1, *(1,) * (len(x[0].shape) - 2))
    scale, shift, mean, variance = (domain.structural(lambda v: v.reshape(channels), p) for p in x[1:])
    deviation = domain.function("sqrt", domain.add(variance, domain.constant(epsilon)))
    normal = domain.divide(domain.subtract(x[0], mean), deviation)
    return (domain.add(domain.multiply(normal, scale), shift),)


_NORMALISATION = Traits(fusion=Fusion.NORMALISATION, accumulates=True)
_NORMALISED_IN_SINGLE = OnnxForm(axes="axis", harmless={"stash_type": 1})
"""Half-precision data are normalised in single precision, as by `ops/domain.py`."""

OPERATORS = (
    _reduce("ReduceSum", 13, lambda domain, a, axes: domain.sum(a, axes)),
    _reduce("ReduceMean", 18, lambda domain, a, axes: domain.mean(a, axes)),
    Operator(
        "Softmax",
        _infer_softmax,
        _softmax,
        since=13,
        arity=(1, 1),
        flops=elementwise_flops(5),
        defaults={"axis": -1},
        traits=Traits(fusion=Fusion.MASKED, accumulates=True, inexact=True, exponential=True),
        onnx=OnnxForm(axes="axis", flattening_before=13),
    ),
    Operator(
        "LayerNormalization",
        _infer_normalised("LayerNormalization"),
        _layer_norm,
        since=17,
        arity=(2, 3),
        flops=elementwise_flops(8),
        defaults={"axis": -1, "epsilon": 1e-5},
        traits=_NORMALISATION,
        onnx=_NORMALISED_IN_SINGLE,
    ),
    Operator(
        "RMSNormalization",
        _infer_normalised("RMSNormalization"),
        _rms_norm,
        since=23,
        arity=(2, 2),
        flops=elementwise_flops(6),
        defaults={"axis": -1, "epsilon": 1e-5},
        traits=_NORMALISATION,
        onnx=_NORMALISED_IN_SINGLE,
    ),
    Operator(
        "BatchNormalization",
        _infer_batch_norm,
        _batch_norm,
        since=9,
        arity=(5, 5),
        flops=elementwise_flops(4),
        defaults={"epsilon": 1e-5},
        traits=Traits(fusion=Fusion.NORMALISATION | Fusion.ACTIVATED, accumulates=True),
        onnx=OnnxForm(ignored=frozenset({"momentum"}), harmless={"training_mode": 0}),
    ),
)
