"""The layers of a transformer encoder (Vaswani et al. 2017), written the way torch's exporter writes them."""

from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np

from rlflow.errors import InputError
from rlflow.zoo.builder import Dimension, GraphBuilder, lengths

_FUSED_LAYER_NORM_OPSET = 17
_BASE_STD, _BASE_HIDDEN = 0.02, 768
_NOISE = 0.1

LayerNorm = Literal["fused", "decomposed"]
"""One LayerNormalization node (ONNX 17), or nine elementary ones."""


@dataclass(frozen=True, slots=True)
class EncoderSizes:
    """What all layers of an encoder share. `epsilon` is the one of its layer normalisation."""

    batch: Dimension
    sequence: Dimension
    hidden: int
    heads: int
    intermediate: int
    layer_norm: LayerNorm
    epsilon: float

    @property
    def std(self) -> float:
        """BERT's 0.02 at 768 units, wider for narrow models, so that attention is as sharp in all."""
        return _BASE_STD * sqrt(_BASE_HIDDEN / self.hidden)

    @property
    def head_width(self) -> int:
        return self.hidden // self.heads

    def check(self, model: str, opset: int) -> None:
        """Raise InputError where heads and units, or opset and normalisation, do not fit together."""
        if self.hidden % self.heads:
            raise InputError(
                f"{model}: hidden={self.hidden} is not a multiple of heads={self.heads}; choose sizes that divide."
            )
        if self.layer_norm == "fused" and opset < _FUSED_LAYER_NORM_OPSET:
            raise InputError(
                f"{model}: LayerNormalization does not exist at opset {opset}; "
                f'choose opset {_FUSED_LAYER_NORM_OPSET} or later, or layer_norm="decomposed".'
            )


def attention(b: GraphBuilder, sizes: EncoderSizes, scope: str, x: str, mask: str | None = None) -> str:
    """output(softmax(q kT / sqrt(d) + mask) v); x and the result (batch, sequence, hidden)."""
    shape = (sizes.batch, sizes.sequence, sizes.heads, sizes.head_width)

    def project(kind: str, permutation: tuple[int, ...]) -> str:
        inner = f"{scope}/{kind}"
        y = linear(b, sizes, inner, x, sizes.hidden, sizes.hidden)
        y = b.node("Reshape", y, b.constant("split_heads", lengths(*shape)), scope=inner)
        return b.node("Transpose", y, scope=inner, perm=permutation)

    query = project("query", (0, 2, 1, 3))
    key = project("key", (0, 2, 3, 1))
    value = project("value", (0, 2, 1, 3))
    scores = b.node("MatMul", query, key, scope=f"{scope}/scores")
    scale = b.constant("sqrt_head_width", np.float32(sqrt(sizes.head_width)))
    scores = b.node("Div", scores, scale, scope=f"{scope}/scores")
    if mask is not None:
        scores = b.node("Add", scores, mask, scope=f"{scope}/scores")
    probabilities = b.node("Softmax", scores, scope=f"{scope}/scores", axis=-1)
    context = b.node("MatMul", probabilities, value, scope=f"{scope}/context")
    context = b.node("Transpose", context, scope=f"{scope}/context", perm=(0, 2, 1, 3))
    merged = b.constant("merge_heads", lengths(sizes.batch, sizes.sequence, sizes.hidden))
    context = b.node("Reshape", context, merged, scope=f"{scope}/context")
    return linear(b, sizes, f"{scope}/output", context, sizes.hidden, sizes.hidden)


def feed_forward(b: GraphBuilder, sizes: EncoderSizes, scope: str, x: str) -> str:
    """output(gelu(intermediate(x))); x and the result (batch, sequence, hidden)."""
    y = linear(b, sizes, f"{scope}/intermediate", x, sizes.hidden, sizes.intermediate)
    y = _gelu(b, f"{scope}/intermediate/gelu", y)
    return linear(b, sizes, f"{scope}/output", y, sizes.intermediate, sizes.hidden)


def linear(b: GraphBuilder, sizes: EncoderSizes, scope: str, x: str, inputs: int, outputs: int) -> str:
    """x W + b over the last axis."""
    y = b.node("MatMul", x, b.parameter(f"{scope}/weight", (inputs, outputs), std=sizes.std), scope=scope)
    return b.node("Add", y, b.parameter(f"{scope}/bias", (outputs,), std=_NOISE), scope=scope)


def layer_normalisation(b: GraphBuilder, sizes: EncoderSizes, scope: str, x: str) -> str:
    """Normalisation of the last axis, (..., hidden), with gain and bias (Ba et al. 2016)."""
    gain = b.parameter(f"{scope}/gain", (sizes.hidden,), mean=1.0, std=_NOISE)
    bias = b.parameter(f"{scope}/bias", (sizes.hidden,), std=_NOISE)
    if sizes.layer_norm == "fused":
        return b.node("LayerNormalization", x, gain, bias, scope=scope, axis=-1, epsilon=sizes.epsilon)
    centred = b.node("Sub", x, _mean(b, scope, x), scope=scope)
    square = b.node("Pow", centred, b.constant("two", np.float32(2)), scope=scope)
    variance = b.node("Add", _mean(b, scope, square), b.constant("epsilon", np.float32(sizes.epsilon)), scope=scope)
    y = b.node("Div", centred, b.node("Sqrt", variance, scope=scope), scope=scope)
    return b.node("Add", b.node("Mul", y, gain, scope=scope), bias, scope=scope)


def token_head(b: GraphBuilder, sizes: EncoderSizes, scope: str, x: str, outputs: int) -> str:
    """W x[:, 0] + b, (batch, outputs): what stands on the first token of x (batch, sequence, hidden)."""
    token = b.node("Gather", x, b.constant("first_token", np.array(0)), scope=scope, axis=1)
    weight = b.parameter(f"{scope}/weight", (outputs, sizes.hidden), std=sizes.std)
    bias = b.parameter(f"{scope}/bias", (outputs,), std=_NOISE)
    return b.node("Gemm", token, weight, bias, scope=scope, transB=1)


def _gelu(b: GraphBuilder, scope: str, x: str) -> str:
    """x (1 + erf(x / sqrt(2))) / 2 (Hendrycks and Gimpel 2016), the exact form."""
    y = b.node("Div", x, b.constant("sqrt_two", np.float32(sqrt(2))), scope=scope)
    y = b.node("Erf", y, scope=scope)
    y = b.node("Add", y, b.constant("one", np.float32(1)), scope=scope)
    y = b.node("Mul", x, y, scope=scope)
    return b.node("Mul", y, b.constant("half", np.float32(0.5)), scope=scope)


def _mean(b: GraphBuilder, scope: str, x: str) -> str:
    """Mean over the last axis; the axes became an input with ONNX 18."""
    if b.opset < 18:
        return b.node("ReduceMean", x, scope=scope, axes=[-1], keepdims=1)
    return b.node("ReduceMean", x, b.constant("last_axis", np.array([-1])), scope=scope, keepdims=1)
