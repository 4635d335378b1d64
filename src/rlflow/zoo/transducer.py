"""Transformer-Transducer (Zhang et al. 2020), which X-RLflow optimises as T-T.

One encoder reads audio, one reads the labels so far, and a small joint network scores the next label for every pair of
a frame and a label. Attention knows distances, not places (Dai et al. 2019): a score is q kT, by content, plus q rT,
where r encodes the distance from query to key. q rT is computed for all 2 T - 1 distances at once and then shifted, so
that column j of row i is the distance i - j; `_shifted` does that by a Pad, two Reshapes and two Slices.
"""

from typing import Literal

import numpy as np
from onnx import ModelProto, TensorProto

from rlflow.errors import InputError
from rlflow.zoo.builder import Dimension, GraphBuilder, lengths
from rlflow.zoo.tokens import additive_mask, embedding, token
from rlflow.zoo.transformer import (
    TOKEN_FIRST,
    WIDTH_FIRST,
    LayerNorm,
    TransformerSizes,
    feed_forward,
    layer_normalisation,
    linear,
    projection,
    relu,
    scaled,
    split_heads,
    weighted_values,
)

_EPSILON = 1e-5
_LONGEST_WAVE = 10000.0


def transformer_transducer(
    *,
    audio_layers: int = 18,
    label_layers: int = 2,
    hidden: int = 512,
    heads: int = 8,
    intermediate: int = 2048,
    frames: int = 64,
    labels: int = 16,
    batch: Dimension = 1,
    vocabulary: int = 1024,
    head: Literal["lattice", "last"] = "lattice",
    layer_norm: LayerNorm = "fused",
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """Transformer-Transducer: an encoder of audio, one of the labels so far, and a network that joins the two.

    Inputs audio (batch, frames, hidden), stacked features, and label_ids (batch, labels) int64, batch a number or a
    symbol. Output logits (batch, frames, labels, vocabulary), or with head="last" (batch, vocabulary) of the last frame
    and the last label, the only ones that a step of decoding reads. Attention is relative (Dai et al. 2019, section
    3.3); a frame attends to all frames, a label to itself and those before it. Each block adds to its normalised input,
    not to its input (Zhang et al., section 2). 18 + 2 layers of 512 units and 8 heads are as published (section 3);
    frames, labels, vocabulary and the width of the joint network are our choice. By default 873 nodes and 69,885,952
    parameters.

    Raises InputError if the sizes do not fit together.
    """
    if hidden % 2:
        raise InputError(f"transformer_transducer: hidden={hidden} is odd; choose an even number: half are sines.")

    b = GraphBuilder("transformer_transducer", seed=seed, opset=opset)
    of_audio = TransformerSizes(batch, frames, hidden, heads, intermediate, layer_norm, _EPSILON)
    of_labels = TransformerSizes(batch, labels, hidden, heads, intermediate, layer_norm, _EPSILON)
    of_audio.check("transformer_transducer", opset)

    audio = b.input("audio", (batch, frames, hidden))
    for layer in range(audio_layers):
        audio = _layer(b, of_audio, f"transducer/audio/layer_{layer}", audio)

    ids = b.input("label_ids", (batch, labels), TensorProto.INT64)
    label = embedding(b, of_labels, "transducer/label/embedding", vocabulary, ids)
    mask = b.constant("causal_mask", additive_mask(np.tri(labels, dtype=bool)))
    for layer in range(label_layers):
        label = _layer(b, of_labels, f"transducer/label/layer_{layer}", label, mask)

    if head == "last":
        audio, label = token(b, "transducer/audio", audio, "last"), token(b, "transducer/label", label, "last")
        b.output("logits", _joint(b, of_audio, audio, label, vocabulary), (batch, vocabulary))
        return b.finish()

    audio = b.node("Unsqueeze", audio, b.constant("label_axis", np.array([2])), scope="transducer/audio")
    label = b.node("Unsqueeze", label, b.constant("frame_axis", np.array([1])), scope="transducer/label")
    logits = _joint(b, of_audio, audio, label, vocabulary)
    b.output("logits", logits, (batch, frames, labels, vocabulary))
    return b.finish()


def _joint(b: GraphBuilder, sizes: TransformerSizes, audio: str, label: str, vocabulary: int) -> str:
    """The joint network: a frame and a label (..., hidden) -> logits (..., vocabulary) of the next label."""
    scope = "transducer/joint"
    parts = (
        linear(b, sizes, f"{scope}/audio", audio, sizes.hidden, sizes.hidden),
        linear(b, sizes, f"{scope}/label", label, sizes.hidden, sizes.hidden),
    )
    x = b.node("Tanh", b.node("Add", *parts, scope=scope), scope=scope)
    return linear(b, sizes, f"{scope}/output", x, sizes.hidden, vocabulary)


def _layer(b: GraphBuilder, sizes: TransformerSizes, scope: str, x: str, mask: str | None = None) -> str:
    """A layer: with y = norm(x), y + attention(y), then the same with feed_forward."""
    y = layer_normalisation(b, sizes, f"{scope}/attention/layer_norm", x)
    x = b.node("Add", y, _relative_attention(b, sizes, f"{scope}/attention", y, mask), scope=f"{scope}/attention")
    y = layer_normalisation(b, sizes, f"{scope}/layer_norm", x)
    return b.node("Add", y, feed_forward(b, sizes, scope, y, relu), scope=scope)


def _relative_attention(b: GraphBuilder, sizes: TransformerSizes, scope: str, x: str, mask: str | None) -> str:
    """output(softmax(((q + u) kT + (q + v) rT) / sqrt(d) + mask) v), r by the distance of query and key."""

    def project(role: str) -> str:
        return linear(b, sizes, f"{scope}/{role}", x, sizes.hidden, sizes.hidden)

    query = project("query")
    key = split_heads(b, sizes, f"{scope}/key", project("key"), WIDTH_FIRST)
    value = split_heads(b, sizes, f"{scope}/value", project("value"), TOKEN_FIRST)

    def biased_query(part: str) -> str:
        """The query plus a bias, one for scores by content (u) and one for scores by distance (v)."""
        bias = b.parameter(f"{scope}/{part}/bias", (sizes.hidden,), std=1.0)
        biased = b.node("Add", query, bias, scope=f"{scope}/{part}")
        return split_heads(b, sizes, f"{scope}/{part}", biased, TOKEN_FIRST)

    by_content = b.node("MatMul", biased_query("content"), key, scope=f"{scope}/content")
    by_distance = b.node("MatMul", biased_query("distance"), _distances(b, sizes, scope), scope=f"{scope}/distance")
    by_distance = _shifted(b, sizes, f"{scope}/distance", by_distance)

    scores = scaled(b, sizes, scope, b.node("Add", by_content, by_distance, scope=f"{scope}/scores"))
    if mask is not None:
        scores = b.node("Add", scores, mask, scope=f"{scope}/scores")
    context = weighted_values(b, sizes, scope, scores, value)
    return linear(b, sizes, f"{scope}/output", context, sizes.hidden, sizes.hidden)


def _distances(b: GraphBuilder, sizes: TransformerSizes, scope: str) -> str:
    """Keys for the distances T - 1 to 1 - T from a query to a key before or after it, (heads, width, 2 T - 1)."""
    scope = f"{scope}/distance"
    waves = b.constant("waves", _waves(_length(sizes), sizes.hidden))
    y = projection(b, sizes, scope, waves, sizes.hidden, sizes.hidden)
    heads = b.constant("split_distances", lengths(2 * _length(sizes) - 1, sizes.heads, sizes.head_width))
    return b.node("Transpose", b.node("Reshape", y, heads, scope=scope), scope=scope, perm=(1, 2, 0))


def _waves(length: int, hidden: int) -> np.ndarray:
    """Sines, then cosines, of each distance from the furthest before to the furthest after, (2 length - 1, hidden)."""
    frequencies = _LONGEST_WAVE ** -(np.arange(0, hidden, 2) / hidden)
    angles = np.arange(length - 1, -length, -1)[:, None] * frequencies
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1).astype(np.float32)


def _shifted(b: GraphBuilder, sizes: TransformerSizes, scope: str, scores: str) -> str:
    """Turn scores by distance (batch, heads, T, 2 T - 1) into scores by key (batch, heads, T, T).

    Dai et al. 2019, appendix B: with one more column in front, a row has 2 T entries. Dropping the first T entries and
    reading the rest in rows of 2 T - 1 makes row i begin at distance i, so that its column j is distance i - j.
    """
    length = _length(sizes)
    outer = (sizes.batch, sizes.heads)
    pads = b.constant("column_in_front", np.array([0, 0, 0, 1, 0, 0, 0, 0]))
    x = b.node("Pad", scores, pads, scope=scope)
    x = b.node("Reshape", x, b.constant("rows_of_keys", lengths(*outer, 2 * length, length)), scope=scope)
    x = _sliced(b, scope, x, 1, 2 * length, 2)
    x = b.node("Reshape", x, b.constant("rows_of_distances", lengths(*outer, length, 2 * length - 1)), scope=scope)
    return _sliced(b, scope, x, 0, length, 3)


def _sliced(b: GraphBuilder, scope: str, x: str, start: int, end: int, axis: int) -> str:
    ends = (b.constant(f"at_{start}", np.array([start])), b.constant(f"at_{end}", np.array([end])))
    return b.node("Slice", x, *ends, b.constant(f"axis_{axis}", np.array([axis])), scope=scope)


def _length(sizes: TransformerSizes) -> int:
    assert isinstance(sizes.sequence, int), "distances are constants"
    return sizes.sequence
