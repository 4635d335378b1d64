"""The decoder of T5 (Raffel et al. 2020, section 2.1), whose encoder's output is an input here.

A layer is attention among the tokens so far, attention to the encoder's output, and a feed-forward block, each behind
an RMS norm and inside a residual. Positions enter as a number added to each attention score: distances back are put
into buckets (0, 1, 2, ... singly, then ever wider), and each head has a learned number for each bucket. With 32
buckets, distance 3 has bucket 3 and distances 113 to 127 share the last one with everything beyond.
"""

from dataclasses import replace

import numpy as np
from onnx import ModelProto, TensorProto

from rlflow.errors import InputError
from rlflow.zoo.builder import Dimension, GraphBuilder
from rlflow.zoo.tokens import Head, causal_mask, leading, tied_head
from rlflow.zoo.transformer import (
    TOKEN_FIRST,
    WIDTH_FIRST,
    TransformerSizes,
    mean,
    projection,
    relu,
    split_heads,
    weighted_values,
)

_EPSILON = 1e-6
_NOISE = 0.1
_FURTHEST = 128
"""Tokens further back than this share the last bucket."""


def t5_decoder(
    *,
    layers: int = 6,
    hidden: int = 512,
    heads: int = 8,
    intermediate: int = 2048,
    sequence: Dimension = 32,
    memory: Dimension = 128,
    batch: Dimension = 1,
    vocabulary: int = 32128,
    positions: int = 512,
    buckets: int = 32,
    head: Head = "all",
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """T5 decoder: attention with a learned bias by distance, attention to an encoder, RMS norm, no other biases.

    Inputs input_ids (batch, sequence) int64 and encoder_hidden_states (batch, memory, hidden), all three numbers or
    symbols; `positions`: the longest sequence, if that is a symbol. Output logits (batch, sequence, vocabulary), or
    with head="last" (batch, vocabulary) for the last token alone; the head is the embedding, scaled. RMS norm is
    written out, attention scores are not scaled, and all layers share the bias by distance, as in the original. By
    default the decoder of T5-Small: 364 nodes and 41,625,344 parameters.

    Raises InputError if the sizes do not fit together.
    """
    sizes = TransformerSizes(batch, sequence, hidden, heads, intermediate, "decomposed", _EPSILON)
    sizes.check("t5_decoder", opset)
    if buckets % 2:
        raise InputError(
            f"t5_decoder: buckets={buckets} is odd; choose an even number, since half of them are for single distances."
        )

    b = GraphBuilder("t5_decoder", seed=seed, opset=opset)
    ids = b.input("input_ids", (batch, sequence), TensorProto.INT64)
    encoded = b.input("encoder_hidden_states", (batch, memory, hidden))
    table = b.parameter("t5_decoder/embedding/weight", (vocabulary, hidden), std=1.0)
    x = b.node("Gather", table, ids, scope="t5_decoder/embedding", axis=0)
    bias = _position_bias(b, sizes, ids, positions, buckets)

    for layer in range(layers):
        scope = f"t5_decoder/layer_{layer}"
        y = _rms_norm(b, sizes, f"{scope}/attention", x)
        x = b.node("Add", x, _attention(b, sizes, f"{scope}/attention", y, sizes, y, bias), scope=f"{scope}/attention")

        y = _rms_norm(b, sizes, f"{scope}/cross_attention", x)
        y = _attention(b, sizes, f"{scope}/cross_attention", y, replace(sizes, sequence=memory), encoded)
        x = b.node("Add", x, y, scope=f"{scope}/cross_attention")

        y = _rms_norm(b, sizes, scope, x)
        x = b.node("Add", x, _feed_forward(b, sizes, scope, y), scope=scope)

    x = _rms_norm(b, sizes, "t5_decoder", x)
    x = b.node("Mul", x, b.constant("head_scale", np.float32(hidden**-0.5)), scope="t5_decoder/head")
    y = tied_head(b, sizes, "t5_decoder/head", x, table, ids, head)
    b.output("logits", y, (batch, vocabulary) if head == "last" else (batch, sequence, vocabulary))
    return b.finish()


def _position_bias(b: GraphBuilder, sizes: TransformerSizes, ids: str, positions: int, buckets: int) -> str:
    """The term added to scores, (1, heads, sequence, sequence): a number by distance and head, and the causal mask."""
    scope = "t5_decoder/position_bias"
    if isinstance(sizes.sequence, int):
        indices = b.constant("distance_buckets", distance_buckets(sizes.sequence, buckets))
    else:
        indices = leading(b, scope, "distance_buckets", distance_buckets(positions, buckets), (0, 1), ids)
        b.declare(indices, (sizes.sequence, sizes.sequence), TensorProto.INT64)
    # About as large as the scores, so that the distance is not lost beside them.
    table = b.parameter(f"{scope}/weight", (buckets, sizes.heads), std=1.0)
    bias = b.node("Gather", table, indices, scope=scope, axis=0)
    bias = b.node("Transpose", bias, scope=scope, perm=(2, 0, 1))
    bias = b.node("Unsqueeze", bias, b.constant("batch_axis", np.array([0])), scope=scope)
    return b.node("Add", bias, causal_mask(b, sizes, f"{scope}/mask", ids, positions), scope=scope)


def distance_buckets(positions: int, buckets: int) -> np.ndarray:
    """The bucket of each distance, (query, key) int64: half of them single distances, the rest ever wider up to 128."""
    single = buckets // 2
    back = np.maximum(np.arange(positions)[:, None] - np.arange(positions)[None], 0)
    growth = np.log(np.maximum(back, 1) / single) / np.log(_FURTHEST / single)
    wide = single + (growth * (buckets - single)).astype(np.int64)
    return np.where(back < single, back, np.minimum(wide, buckets - 1))


def _rms_norm(b: GraphBuilder, sizes: TransformerSizes, scope: str, x: str) -> str:
    """RMS normalisation: x over the root of its mean square, times a gain (Zhang and Sennrich 2019)."""
    scope = f"{scope}/rms_norm"
    square = mean(b, scope, b.node("Pow", x, b.constant("two", np.float32(2)), scope=scope))
    square = b.node("Add", square, b.constant("epsilon", np.float32(sizes.epsilon)), scope=scope)
    root = b.node("Reciprocal", b.node("Sqrt", square, scope=scope), scope=scope)
    gain = b.parameter(f"{scope}/gain", (sizes.hidden,), mean=1.0, std=_NOISE)
    return b.node("Mul", gain, b.node("Mul", x, root, scope=scope), scope=scope)


def _attention(
    b: GraphBuilder,
    sizes: TransformerSizes,
    scope: str,
    x: str,
    memory_sizes: TransformerSizes,
    memory: str,
    bias: str | None = None,
) -> str:
    """Attention of x (batch, sequence, hidden) to memory (batch, length, hidden): output(softmax(q kT + bias) v)."""

    def project(role: str, of: str, of_sizes: TransformerSizes, permutation: tuple[int, ...]) -> str:
        y = projection(b, sizes, f"{scope}/{role}", of, sizes.hidden, sizes.hidden)
        return split_heads(b, of_sizes, f"{scope}/{role}", y, permutation)

    query = project("query", x, sizes, TOKEN_FIRST)
    key = project("key", memory, memory_sizes, WIDTH_FIRST)
    value = project("value", memory, memory_sizes, TOKEN_FIRST)

    scores = b.node("MatMul", query, key, scope=f"{scope}/scores")
    if bias is not None:
        scores = b.node("Add", scores, bias, scope=f"{scope}/scores")
    context = weighted_values(b, sizes, scope, scores, value)
    return projection(b, sizes, f"{scope}/output", context, sizes.hidden, sizes.hidden)


def _feed_forward(b: GraphBuilder, sizes: TransformerSizes, scope: str, x: str) -> str:
    y = projection(b, sizes, f"{scope}/intermediate", x, sizes.hidden, sizes.intermediate)
    y = relu(b, f"{scope}/intermediate", y)
    return projection(b, sizes, f"{scope}/output", y, sizes.intermediate, sizes.hidden)
