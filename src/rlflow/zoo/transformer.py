"""The layers of a transformer (Vaswani et al. 2017), written the way torch's exporter writes them.

    sizes = TransformerSizes(1, 128, hidden=768, heads=12, intermediate=3072, layer_norm="fused", epsilon=1e-5)
    x = pre_norm_layer(b, sizes, "layer_0", x)

Every function takes the builder, the sizes, the scope in which its nodes and parameters are named, and the names of its
input tensors; it returns the name of its output. All tensors between layers are (batch, sequence, hidden).

The invariant: a function's parameters are named by its scope alone, so models that use the same scopes have the same
weights, however attention or normalisation is spelled.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import pi, sqrt
from typing import Literal

import numpy as np

from rlflow.errors import InputError
from rlflow.zoo.builder import Dimension, GraphBuilder, lengths

_FUSED_LAYER_NORM_OPSET = 17
_BASE_STD, _BASE_HIDDEN = 0.02, 768
_NOISE = 0.1

LayerNorm = Literal["fused", "decomposed"]
"""One LayerNormalization node (ONNX 17), or nine elementary ones."""

Activation = Callable[[GraphBuilder, str, str], str]
"""A function from builder, scope and tensor to the activated tensor."""

TOKEN_FIRST = (0, 2, 1, 3)
"""From (batch, sequence, heads, width) to (batch, heads, sequence, width): queries and values."""
WIDTH_FIRST = (0, 2, 3, 1)
"""From (batch, sequence, heads, width) to (batch, heads, width, sequence): keys."""


@dataclass(frozen=True, slots=True)
class TransformerSizes:
    """The sizes that all layers of a transformer share; `epsilon` is that of the layer normalisation."""

    batch: Dimension
    sequence: Dimension
    hidden: int
    heads: int
    intermediate: int
    layer_norm: LayerNorm
    epsilon: float

    @property
    def std(self) -> float:
        """The spread of drawn weights: BERT's 0.02 at 768 units, more if narrower, so that attention is as sharp."""
        return _BASE_STD * sqrt(_BASE_HIDDEN / self.hidden)

    @property
    def head_width(self) -> int:
        return self.hidden // self.heads

    def check(self, model: str, opset: int) -> None:
        """Raise InputError if heads and units, or opset and normalisation, do not fit together."""
        if self.hidden % self.heads:
            raise InputError(
                f"{model}: hidden={self.hidden} is not a multiple of heads={self.heads}; choose sizes that divide."
            )
        if self.layer_norm == "fused" and opset < _FUSED_LAYER_NORM_OPSET:
            raise InputError(
                f"{model}: LayerNormalization does not exist at opset {opset}; "
                f'choose opset {_FUSED_LAYER_NORM_OPSET} or later, or layer_norm="decomposed".'
            )


def attention(b: GraphBuilder, sizes: TransformerSizes, scope: str, x: str, mask: str | None = None) -> str:
    """Multi-head attention, output(softmax(q kT / sqrt(d) + mask) v); x and the result (batch, sequence, hidden)."""

    def project(role: str, permutation: tuple[int, ...]) -> str:
        y = linear(b, sizes, f"{scope}/{role}", x, sizes.hidden, sizes.hidden)
        return split_heads(b, sizes, f"{scope}/{role}", y, permutation)

    query = project("query", TOKEN_FIRST)
    key = project("key", WIDTH_FIRST)
    value = project("value", TOKEN_FIRST)
    return _attend(b, sizes, scope, query, key, value, mask)


def merged_attention(b: GraphBuilder, sizes: TransformerSizes, scope: str, x: str, mask: str | None = None) -> str:
    """Multi-head attention with one projection for query, key and value, which is then split."""
    inner = f"{scope}/query_key_value"
    y = linear(b, sizes, inner, x, sizes.hidden, 3 * sizes.hidden)
    thirds = b.constant("thirds", lengths(*[sizes.hidden] * 3))
    query, key, value = b.multi_output_node("Split", y, thirds, scope=inner, outputs=3, axis=2)

    query = split_heads(b, sizes, f"{scope}/query", query, TOKEN_FIRST)
    key = split_heads(b, sizes, f"{scope}/key", key, WIDTH_FIRST)
    value = split_heads(b, sizes, f"{scope}/value", value, TOKEN_FIRST)
    return _attend(b, sizes, scope, query, key, value, mask)


def _attend(
    b: GraphBuilder, sizes: TransformerSizes, scope: str, query: str, key: str, value: str, mask: str | None
) -> str:
    scores = scaled(b, sizes, scope, b.node("MatMul", query, key, scope=f"{scope}/scores"))
    if mask is not None:
        scores = b.node("Add", scores, mask, scope=f"{scope}/scores")
    context = weighted_values(b, sizes, scope, scores, value)
    return linear(b, sizes, f"{scope}/output", context, sizes.hidden, sizes.hidden)


def split_heads(b: GraphBuilder, sizes: TransformerSizes, scope: str, x: str, permutation: tuple[int, ...]) -> str:
    """Split x (batch, sequence, hidden) into (batch, sequence, heads, width) and permute the axes."""
    shape = lengths(sizes.batch, sizes.sequence, sizes.heads, sizes.head_width)
    x = b.node("Reshape", x, b.constant("split_heads", shape), scope=scope)
    return b.node("Transpose", x, scope=scope, perm=permutation)


def scaled(b: GraphBuilder, sizes: TransformerSizes, scope: str, scores: str) -> str:
    """Divide scores by the root of the heads' width."""
    scale = b.constant("sqrt_head_width", np.float32(sqrt(sizes.head_width)))
    return b.node("Div", scores, scale, scope=f"{scope}/scores")


def weighted_values(b: GraphBuilder, sizes: TransformerSizes, scope: str, scores: str, value: str) -> str:
    """softmax(scores) value, the heads side by side: (batch, sequence, hidden).

    scores (batch, heads, sequence, keys), value (batch, heads, keys, width).
    """
    probabilities = b.node("Softmax", scores, scope=f"{scope}/scores", axis=-1)
    context = b.node("MatMul", probabilities, value, scope=f"{scope}/context")
    context = b.node("Transpose", context, scope=f"{scope}/context", perm=TOKEN_FIRST)
    merged = b.constant("merge_heads", lengths(sizes.batch, sizes.sequence, sizes.hidden))
    return b.node("Reshape", context, merged, scope=f"{scope}/context")


def relu(b: GraphBuilder, scope: str, x: str) -> str:
    return b.node("Relu", x, scope=scope)


def gelu(b: GraphBuilder, scope: str, x: str) -> str:
    """GELU in its exact form, x (1 + erf(x / sqrt(2))) / 2 (Hendrycks and Gimpel 2016)."""
    scope = f"{scope}/gelu"
    y = b.node("Div", x, b.constant("sqrt_two", np.float32(sqrt(2))), scope=scope)
    y = b.node("Erf", y, scope=scope)
    y = b.node("Add", y, b.constant("one", np.float32(1)), scope=scope)
    y = b.node("Mul", x, y, scope=scope)
    return b.node("Mul", y, b.constant("half", np.float32(0.5)), scope=scope)


def gelu_tanh(b: GraphBuilder, scope: str, x: str) -> str:
    """GELU by tanh, x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2 (Hendrycks and Gimpel 2016, section 2)."""
    scope = f"{scope}/gelu"
    y = b.node("Pow", x, b.constant("three", np.float32(3)), scope=scope)
    y = b.node("Mul", y, b.constant("cubic", np.float32(0.044715)), scope=scope)
    y = b.node("Add", x, y, scope=scope)
    y = b.node("Mul", y, b.constant("sqrt_two_over_pi", np.float32(sqrt(2 / pi))), scope=scope)
    y = b.node("Add", b.node("Tanh", y, scope=scope), b.constant("one", np.float32(1)), scope=scope)
    return b.node("Mul", b.node("Mul", x, b.constant("half", np.float32(0.5)), scope=scope), y, scope=scope)


def feed_forward(b: GraphBuilder, sizes: TransformerSizes, scope: str, x: str, activation: Activation = gelu) -> str:
    """output(activation(intermediate(x))); x and the result (batch, sequence, hidden)."""
    y = linear(b, sizes, f"{scope}/intermediate", x, sizes.hidden, sizes.intermediate)
    y = activation(b, f"{scope}/intermediate", y)
    return linear(b, sizes, f"{scope}/output", y, sizes.intermediate, sizes.hidden)


def pre_norm_layer(
    b: GraphBuilder,
    sizes: TransformerSizes,
    scope: str,
    x: str,
    *,
    attend: Callable[[GraphBuilder, TransformerSizes, str, str, str | None], str] = attention,
    mask: str | None = None,
    activation: Activation = gelu,
) -> str:
    """The layer that ViT and the GPTs repeat: x + attend(norm(x)), then the same with feed_forward."""
    y = layer_normalisation(b, sizes, f"{scope}/attention/layer_norm", x)
    y = attend(b, sizes, f"{scope}/attention", y, mask)
    x = b.node("Add", y, x, scope=f"{scope}/attention/residual")
    y = layer_normalisation(b, sizes, f"{scope}/layer_norm", x)
    return b.node("Add", feed_forward(b, sizes, scope, y, activation), x, scope=f"{scope}/residual")


def linear(b: GraphBuilder, sizes: TransformerSizes, scope: str, x: str, inputs: int, outputs: int) -> str:
    """A linear layer with a bias, x W + b over the last axis."""
    y = projection(b, sizes, scope, x, inputs, outputs)
    return b.node("Add", y, b.parameter(f"{scope}/bias", (outputs,), std=_NOISE), scope=scope)


def projection(b: GraphBuilder, sizes: TransformerSizes, scope: str, x: str, inputs: int, outputs: int) -> str:
    """A linear layer without a bias, x W over the last axis."""
    return b.node("MatMul", x, b.parameter(f"{scope}/weight", (inputs, outputs), std=sizes.std), scope=scope)


def layer_normalisation(b: GraphBuilder, sizes: TransformerSizes, scope: str, x: str) -> str:
    """Layer normalisation over the last axis, (..., hidden), with gain and bias (Ba et al. 2016)."""
    gain = b.parameter(f"{scope}/gain", (sizes.hidden,), mean=1.0, std=_NOISE)
    bias = b.parameter(f"{scope}/bias", (sizes.hidden,), std=_NOISE)
    if sizes.layer_norm == "fused":
        return b.node("LayerNormalization", x, gain, bias, scope=scope, axis=-1, epsilon=sizes.epsilon)

    centred = b.node("Sub", x, mean(b, scope, x), scope=scope)
    square = b.node("Pow", centred, b.constant("two", np.float32(2)), scope=scope)
    variance = b.node("Add", mean(b, scope, square), b.constant("epsilon", np.float32(sizes.epsilon)), scope=scope)
    y = b.node("Div", centred, b.node("Sqrt", variance, scope=scope), scope=scope)
    return b.node("Add", b.node("Mul", y, gain, scope=scope), bias, scope=scope)


def mean(b: GraphBuilder, scope: str, x: str) -> str:
    """The mean over the last axis, which stays with length 1; from opset 18 the axes are an input of ReduceMean."""
    if b.opset < 18:
        return b.node("ReduceMean", x, scope=scope, axes=[-1], keepdims=1)
    return b.node("ReduceMean", x, b.constant("last_axis", np.array([-1])), scope=scope, keepdims=1)
