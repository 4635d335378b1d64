"""BERT of any size (Devlin et al. 2019), written the way torch's exporter writes it."""

from dataclasses import dataclass
from math import sqrt
from typing import Literal

import numpy as np
from onnx import ModelProto, TensorProto

from rlflow.errors import InputError
from rlflow.zoo.builder import Dimension, GraphBuilder, lengths

_FUSED_LAYER_NORM_OPSET = 17
_MASKED_SCORE = np.float32(-1e4)
_EPSILON = 1e-12
_BASE_STD, _BASE_HIDDEN = 0.02, 768
_NOISE = 0.1

LayerNorm = Literal["fused", "decomposed"]


@dataclass(frozen=True, slots=True)
class _Sizes:
    batch: Dimension
    sequence: Dimension
    hidden: int
    heads: int
    intermediate: int
    layer_norm: LayerNorm

    @property
    def std(self) -> float:
        """BERT's 0.02 at BERT-Base, wider for narrow models, so that attention is as sharp in all."""
        return _BASE_STD * sqrt(_BASE_HIDDEN / self.hidden)

    @property
    def head_width(self) -> int:
        return self.hidden // self.heads


def bert(
    *,
    layers: int = 12,
    hidden: int = 768,
    heads: int = 12,
    intermediate: int = 3072,
    sequence: Dimension = 128,
    batch: Dimension = 1,
    vocabulary: int = 30522,
    positions: int = 512,
    head: Literal["none", "cls"] = "none",
    layer_norm: LayerNorm = "fused",
    attention_mask: bool = True,
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """BERT encoder: softmax attention, residuals, LayerNorm, erf GELU; BERT-Base unless told otherwise.

    Inputs input_ids, token_type_ids and, with `attention_mask`, attention_mask: int64 (batch, sequence), both
    numbers or symbols. Output last_hidden_state (batch, sequence, hidden), or with head="cls" pooler_output
    (batch, hidden), which reads token 0 alone. `layer_norm` is one LayerNormalization node (ONNX 17) or nine
    elementary ones. Every parameter is drawn: gains about 1, biases about 0, none of them exactly so. All but
    the key biases matter: they shift a row of scores by one number, which softmax takes out again.

    Raises InputError where the sizes do not fit together.
    """
    _check(hidden, heads, sequence, positions, layer_norm, opset)
    sizes = _Sizes(batch, sequence, hidden, heads, intermediate, layer_norm)
    b = GraphBuilder("bert", seed=seed, opset=opset)
    input_ids = b.input("input_ids", (batch, sequence), TensorProto.INT64)
    token_type_ids = b.input("token_type_ids", (batch, sequence), TensorProto.INT64)
    mask = _additive_mask(b, sizes) if attention_mask else None
    x = _embeddings(b, sizes, input_ids, token_type_ids, vocabulary, positions)
    for layer in range(layers):
        x = _attention(b, sizes, f"bert/layer_{layer}/attention", x, mask)
        x = _feed_forward(b, sizes, f"bert/layer_{layer}", x)
    if head == "cls":
        b.output("pooler_output", _pooler(b, sizes, x), (batch, hidden))
    else:
        b.output("last_hidden_state", x, (batch, sequence, hidden))
    return b.finish()


def _check(hidden: int, heads: int, sequence: Dimension, positions: int, layer_norm: LayerNorm, opset: int) -> None:
    if hidden % heads:
        raise InputError(f"bert: hidden={hidden} is not a multiple of heads={heads}; choose sizes that divide.")
    if isinstance(sequence, int) and sequence > positions:
        raise InputError(f"bert: sequence={sequence} exceeds positions={positions}; raise positions.")
    if layer_norm == "fused" and opset < _FUSED_LAYER_NORM_OPSET:
        raise InputError(
            f"bert: LayerNormalization does not exist at opset {opset}; "
            f'choose opset {_FUSED_LAYER_NORM_OPSET} or later, or layer_norm="decomposed".'
        )


def _additive_mask(b: GraphBuilder, sizes: _Sizes) -> str:
    """(batch, 1, 1, sequence): 0 where a token is visible, about minus infinity where it is not."""
    scope = "bert/mask"
    mask = b.input("attention_mask", (sizes.batch, sizes.sequence), TensorProto.INT64)
    mask = b.node("Unsqueeze", mask, b.constant("head_axes", np.array([1, 2])), scope=scope)
    mask = b.node("Cast", mask, scope=scope, to=TensorProto.FLOAT)
    mask = b.node("Sub", b.constant("one", np.float32(1)), mask, scope=scope)
    return b.node("Mul", mask, b.constant("masked_score", _MASKED_SCORE), scope=scope)


def _embeddings(
    b: GraphBuilder, sizes: _Sizes, input_ids: str, token_type_ids: str, vocabulary: int, positions: int
) -> str:
    scope = "bert/embeddings"

    def embed(kind: str, rows: int, indices: str) -> str:
        table = b.parameter(f"{scope}/{kind}/weight", (rows, sizes.hidden), std=sizes.std)
        return b.node("Gather", table, indices, scope=f"{scope}/{kind}", axis=0)

    words = embed("word", vocabulary, input_ids)
    types = embed("token_type", 2, token_type_ids)
    x = b.node("Add", words, types, scope=scope)
    x = b.node("Add", x, embed("position", positions, _position_ids(b, sizes, input_ids, positions)), scope=scope)
    return _layer_norm(b, sizes, f"{scope}/layer_norm", x)


def _position_ids(b: GraphBuilder, sizes: _Sizes, input_ids: str, positions: int) -> str:
    """(1, sequence): a constant, or as many of the known positions as the input is long."""
    scope = "bert/embeddings/position_ids"
    if isinstance(sizes.sequence, int):
        return b.constant("position_ids", np.arange(sizes.sequence)[None])
    length = b.node("Shape", input_ids, scope=scope, start=1, end=2)
    start = b.constant("first_position", np.array([0]))
    axis = b.constant("sequence_axis", np.array([1]))
    ids = b.node("Slice", b.constant("position_ids", np.arange(positions)[None]), start, length, axis, scope=scope)
    b.declare(ids, (1, sizes.sequence), TensorProto.INT64)
    return ids


def _attention(b: GraphBuilder, sizes: _Sizes, scope: str, x: str, mask: str | None) -> str:
    """LayerNorm(x + output(softmax(q kT / sqrt(d) + mask) v)); x (batch, sequence, hidden)."""
    shape = (sizes.batch, sizes.sequence, sizes.heads, sizes.head_width)

    def project(kind: str, permutation: tuple[int, ...]) -> str:
        inner = f"{scope}/{kind}"
        y = _linear(b, sizes, inner, x, sizes.hidden, sizes.hidden)
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
    y = _linear(b, sizes, f"{scope}/output", context, sizes.hidden, sizes.hidden)
    y = b.node("Add", y, x, scope=f"{scope}/residual")
    return _layer_norm(b, sizes, f"{scope}/layer_norm", y)


def _feed_forward(b: GraphBuilder, sizes: _Sizes, scope: str, x: str) -> str:
    """LayerNorm(x + output(gelu(intermediate(x)))); x (batch, sequence, hidden)."""
    y = _linear(b, sizes, f"{scope}/intermediate", x, sizes.hidden, sizes.intermediate)
    y = _gelu(b, f"{scope}/intermediate/gelu", y)
    y = _linear(b, sizes, f"{scope}/output", y, sizes.intermediate, sizes.hidden)
    y = b.node("Add", y, x, scope=f"{scope}/residual")
    return _layer_norm(b, sizes, f"{scope}/layer_norm", y)


def _gelu(b: GraphBuilder, scope: str, x: str) -> str:
    """x (1 + erf(x / sqrt(2))) / 2 (Hendrycks and Gimpel 2016), the exact form."""
    y = b.node("Div", x, b.constant("sqrt_two", np.float32(sqrt(2))), scope=scope)
    y = b.node("Erf", y, scope=scope)
    y = b.node("Add", y, b.constant("one", np.float32(1)), scope=scope)
    y = b.node("Mul", x, y, scope=scope)
    return b.node("Mul", y, b.constant("half", np.float32(0.5)), scope=scope)


def _linear(b: GraphBuilder, sizes: _Sizes, scope: str, x: str, inputs: int, outputs: int) -> str:
    y = b.node("MatMul", x, b.parameter(f"{scope}/weight", (inputs, outputs), std=sizes.std), scope=scope)
    return b.node("Add", y, b.parameter(f"{scope}/bias", (outputs,), std=_NOISE), scope=scope)


def _layer_norm(b: GraphBuilder, sizes: _Sizes, scope: str, x: str) -> str:
    gain = b.parameter(f"{scope}/gain", (sizes.hidden,), mean=1.0, std=_NOISE)
    bias = b.parameter(f"{scope}/bias", (sizes.hidden,), std=_NOISE)
    if sizes.layer_norm == "fused":
        return b.node("LayerNormalization", x, gain, bias, scope=scope, axis=-1, epsilon=_EPSILON)
    centred = b.node("Sub", x, _mean(b, scope, x), scope=scope)
    square = b.node("Pow", centred, b.constant("two", np.float32(2)), scope=scope)
    variance = b.node("Add", _mean(b, scope, square), b.constant("epsilon", np.float32(_EPSILON)), scope=scope)
    y = b.node("Div", centred, b.node("Sqrt", variance, scope=scope), scope=scope)
    return b.node("Add", b.node("Mul", y, gain, scope=scope), bias, scope=scope)


def _mean(b: GraphBuilder, scope: str, x: str) -> str:
    """Mean over the last axis; the axes became an input with ONNX 18."""
    if b.opset < 18:
        return b.node("ReduceMean", x, scope=scope, axes=[-1], keepdims=1)
    return b.node("ReduceMean", x, b.constant("last_axis", np.array([-1])), scope=scope, keepdims=1)


def _pooler(b: GraphBuilder, sizes: _Sizes, x: str) -> str:
    """tanh(W x[:, 0] + b), (batch, hidden)."""
    scope = "bert/pooler"
    token = b.node("Gather", x, b.constant("first_token", np.array(0)), scope=scope, axis=1)
    weight = b.parameter(f"{scope}/weight", (sizes.hidden, sizes.hidden), std=sizes.std)
    bias = b.parameter(f"{scope}/bias", (sizes.hidden,), std=_NOISE)
    return b.node("Tanh", b.node("Gemm", token, weight, bias, scope=scope, transB=1), scope=scope)
