"""Tokens on their way into a transformer and out of it: embeddings, positions, masks, heads."""

from typing import Literal

import numpy as np
from onnx import TensorProto

from rlflow.zoo.builder import GraphBuilder, lengths
from rlflow.zoo.transformer import TransformerSizes

_NOISE = 0.1

MASKED_SCORE = np.float32(-1e4)
"""About minus infinity: softmax makes nothing of it."""

Head = Literal["all", "last"]
"""What a decoder's head reads: every token, or the last alone, as one step of decoding does."""


def embedding(b: GraphBuilder, sizes: TransformerSizes, scope: str, rows: int, indices: str) -> str:
    """Rows of a drawn table (rows, hidden): the shape of the indices, and hidden."""
    table = b.parameter(f"{scope}/weight", (rows, sizes.hidden), std=sizes.std)
    return b.node("Gather", table, indices, scope=scope, axis=0)


def position_ids(b: GraphBuilder, sizes: TransformerSizes, scope: str, ids: str, positions: int) -> str:
    """(1, sequence): a constant, or as many of the known positions as `ids` (batch, sequence) is long."""
    if isinstance(sizes.sequence, int):
        return b.constant("position_ids", np.arange(sizes.sequence)[None])
    found = leading(b, scope, "position_ids", np.arange(positions)[None], (1,), ids)
    b.declare(found, (1, sizes.sequence), TensorProto.INT64)
    return found


def causal_mask(b: GraphBuilder, sizes: TransformerSizes, scope: str, ids: str, positions: int) -> str:
    """(sequence, sequence), added to scores: a token sees itself and those before it."""
    if isinstance(sizes.sequence, int):
        return b.constant("causal_mask", additive_mask(np.tri(sizes.sequence, dtype=bool)))
    mask = leading(b, scope, "causal_mask", additive_mask(np.tri(positions, dtype=bool)), (0, 1), ids)
    b.declare(mask, (sizes.sequence, sizes.sequence))
    return mask


def additive_mask(visible: np.ndarray) -> np.ndarray:
    """0 where a token is visible, about minus infinity where it is not."""
    return np.where(visible, np.float32(0), MASKED_SCORE)


def leading(b: GraphBuilder, scope: str, name: str, table: np.ndarray, axes: tuple[int, ...], ids: str) -> str:
    """As much of a constant table, from its start along the axes, as `ids` (batch, sequence) is long."""
    length = b.node("Shape", ids, scope=scope, start=1, end=2)
    end = length if len(axes) == 1 else b.node("Concat", *[length] * len(axes), scope=scope, axis=0)
    start, along = b.constant("first_position", np.zeros(len(axes), int)), b.constant("sequence_axis", np.array(axes))
    return b.node("Slice", b.constant(name, table), start, end, along, scope=scope)


def token(b: GraphBuilder, scope: str, x: str, position: Literal["first", "last"]) -> str:
    """One token of x (batch, sequence, hidden): (batch, hidden)."""
    index = b.constant(f"{position}_token", np.array(0 if position == "first" else -1))
    return b.node("Gather", x, index, scope=scope, axis=1)


def token_head(b: GraphBuilder, sizes: TransformerSizes, scope: str, x: str, outputs: int) -> str:
    """W x[:, 0] + b, (batch, outputs): what stands on the first token of x (batch, sequence, hidden)."""
    read = token(b, scope, x, "first")
    weight = b.parameter(f"{scope}/weight", (outputs, sizes.hidden), std=sizes.std)
    bias = b.parameter(f"{scope}/bias", (outputs,), std=_NOISE)
    return b.node("Gemm", read, weight, bias, scope=scope, transB=1)


def tied_head(b: GraphBuilder, sizes: TransformerSizes, scope: str, x: str, table: str, ids: str, head: Head) -> str:
    """x tableT, the embedding read backwards: (batch, sequence, vocabulary), or (batch, vocabulary) for the last token.

    table (vocabulary, hidden), ids (batch, sequence). One Gemm, so that the table need not be kept transposed as well.
    """
    if head == "last":
        return b.node("Gemm", token(b, scope, x, "last"), table, scope=scope, transB=1)
    flat = b.node("Reshape", x, b.constant("flat_tokens", np.array([-1, sizes.hidden])), scope=scope)
    y = b.node("Gemm", flat, table, scope=scope, transB=1)
    rows = (sizes.batch, sizes.sequence)
    if all(isinstance(d, int) for d in rows):
        return b.node("Reshape", y, b.constant("split_tokens", lengths(*rows, -1)), scope=scope)
    rest = b.constant("rest", np.array([-1]))
    shape = b.node("Concat", b.node("Shape", ids, scope=scope), rest, scope=scope, axis=0)
    return b.node("Reshape", y, shape, scope=scope)
