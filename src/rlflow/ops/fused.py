"""Operators of ai.onnx that stand for several others: Gelu (20) and Attention (23)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import pi, prod, sqrt

import numpy as np

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes, AttributeValue
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.ops.domain import Array, Domain
from rlflow.ops.onnx_form import OnnxForm, OnnxNode
from rlflow.ops.readings import mask_at
from rlflow.ops.schema import (
    Operator,
    Types,
    broadcast,
    elementwise_flops,
    only,
    same_dimension,
    same_dtype,
    shape_of,
)
from rlflow.ops.traits import Fusion, Traits

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


def _infer_attention(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    """Queries (B, H, T, D), keys (B, H, S, D), values (B, H, S, E) and a mask that is added to scores (B, H, T, S).

    ONNX Runtime broadcasts a mask over B and H alone, and takes the root of the scale.
    """
    only(attributes, ["scale"], "Attention")
    same_dtype(inputs, "Attention")
    shapes = [shape_of(t, "Attention") for t in inputs]
    scale = attributes["scale"]
    if not inputs[0].is_float or any(len(s) != 4 for s in shapes[:3]) or not isinstance(scale, float) or scale <= 0:
        raise TypeInferenceError(f"Attention: {[str(t) for t in inputs[:3]]} of scale {scale!r} are not understood")
    queries, keys, values = shapes[:3]
    batch, heads = (_common(queries[axis], keys[axis], values[axis]) for axis in (0, 1))
    _common(queries[3], keys[3])
    scores = (batch, heads, queries[2], _common(keys[2], values[2]))
    for mask in shapes[3:]:
        if None in scores or mask[-2:] != scores[2:] or broadcast([mask, scores], "Attention") != scores:
            raise TypeInferenceError(f"Attention: a mask {mask} for scores {scores}")
    return (TensorType(inputs[0].dtype, (batch, heads, queries[2], values[3])),)


def _common(*dimensions: Dimension) -> Dimension:
    return reduce(lambda a, b: same_dimension(a, b, "Attention"), dimensions)


def _attention(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    scale = attributes["scale"]
    assert isinstance(scale, float)
    keys = domain.structural(lambda v: v.swapaxes(-1, -2), x[1])
    scores = domain.multiply(domain.matmul(x[0], keys), domain.constant(scale))
    for mask in x[3:]:
        scores = domain.add(scores, mask)
    return (domain.matmul(domain.softmax(scores, len(scores.shape) - 1), x[2]),)


def _attention_flops(attributes: Attributes, inputs: Types, outputs: Types) -> int:
    """Two products and a Softmax, of five operations an element like the operator, over the scores."""
    queries, keys, values = (t.shape or () for t in inputs[:3])
    scores = prod(d for d in (*queries[:3], keys[2]) if isinstance(d, int))
    widths = sum(d for d in (queries[3], values[3]) if isinstance(d, int))
    return scores * (2 * widths + 5 + (len(inputs) == 4))


def _complete_attention(attributes: dict[str, AttributeValue], node: OnnxNode) -> Attributes:
    """The scale, which is one over the root of the queries' width where none is named."""
    if "scale" in attributes:
        return attributes
    queries = node.type_of(0)
    width = queries.shape[-1] if queries is not None and queries.shape else None
    if not isinstance(width, int) or not width:
        raise TypeInferenceError(f"Attention: the width of the queries {queries} is not known")
    return attributes | {"scale": float(1 / np.sqrt(np.float32(width)))}


OPERATORS = (
    Operator(
        "Gelu",
        _infer_gelu,
        _gelu,
        since=20,
        arity=(1, 1),
        flops=elementwise_flops(5),
        defaults={"approximate": "none"},
        traits=Traits(elementwise=True, fusion=Fusion.POINTWISE, inexact=True),
    ),
    Operator(
        "Attention",
        _infer_attention,
        _attention,
        since=23,
        arity=(3, 4),
        flops=_attention_flops,
        required=("scale",),
        traits=Traits(accumulates=True, uses=(mask_at(3),)),
        onnx=OnnxForm(
            harmless={"is_causal": 0, "softcap": 0.0, "qk_matmul_output_mode": 0}, complete=_complete_attention
        ),
    ),
)
