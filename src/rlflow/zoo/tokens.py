"""The token side of a transformer: embeddings, positions, masks and heads."""

from typing import Literal

import numpy as np
from onnx import TensorProto

from rlflow.zoo.builder import GraphBuilder, lengths
from rlflow.zoo.transformer import TransformerSizes

_NOISE = 0.1

MASKED_SCORE = np.float32(-1e4)
"""A score so low that softmax gives it no weight."""

Head = Literal["all", "last"]
"""The tokens that a decoder's head reads: all of them, or the last alone, as one step of decoding does."""


def embedding(b: GraphBuilder, sizes: TransformerSizes, scope: str, rows: int, indices: str) -> str:
    """Rows of a drawn table (rows, hidden): indices (...) -> (..., hidden)."""
    table = b.parameter(f"{scope}/weight", (rows, sizes.hidden), std=sizes.std)
    return b.node("Gather", table, indices, scope=scope, axis=0)


def position_ids(b: GraphBuilder, sizes: TransformerSizes, scope: str, ids: str, positions: int) -> str:
    """Position ids (1, sequence): a constant, or as many of the known ones as `ids` (batch, sequence) is long."""
    if isinstance(sizes.sequence, int):
        return b.constant("position_ids", np.arange(sizes.sequence)[None])
    found = leading(b, scope, "position_ids", np.arange(positions)[None], (1,), ids)
    b.declare(found, (1, sizes.sequence), TensorProto.INT64)
    return found


def causal_mask(b: GraphBuilder, sizes: TransformerSizes, scope: str, ids: str, positions: int) -> str:
    """The causal mask (sequence, sequence), added to scores: a token sees itself and those before it."""
    if isinstance(sizes.sequence, int):
        return b.constant("causal_mask", additive_mask(np.tri(sizes.sequence, dtype=bool)))
    mask = leading(b, scope, "causal_mask", additive_mask(np.tri(positions, dtype=bool)), (0, 1), ids)
    b.declare(mask, (sizes.sequence, sizes.sequence))
    return mask


def additive_mask(visible: np.ndarray) -> np.ndarray:
    """A mask to add to scores: 0 where a token is visible, very low where it is not."""
    return np.where(visible, np.float32(0), MASKED_SCORE)


def leading(b: GraphBuilder, scope: str, name: str, table: np.ndarray, axes: tuple[int, ...], ids: str) -> str:
    """The start of a constant table, as long along the axes as `ids` (batch, sequence) is."""
    length = b.node("Shape", ids, scope=scope, start=1, end=2)
    end = length if len(axes) == 1 else b.node("Concat", *[length] * len(axes), scope=scope, axis=0)
    start, along = b.constant("first_position", np.zeros(len(axes), int)), b.constant("sequence_axis", np.array(axes))
    return b.node("Slice", b.constant(name, table), start, end, along, scope=scope)


def token(b: GraphBuilder, scope: str, x: str, position: Literal["first", "last"]) -> str:
    """One token of x (batch, sequence, hidden): (batch, hidden)."""
    index = b.constant(f"{position}_token", np.array(0 if position == "first" else -1))
    return b.node("Gather", x, index, scope=scope, axis=1)


def token_head(b: GraphBuilder, sizes: TransformerSizes, scope: str, x: str, outputs: int) -> str:
    """A linear head on the first token, W x[:, 0] + b: x (batch, sequence, hidden) -> (batch, outputs)."""
    read = token(b, scope, x, "first")
    weight = b.parameter(f"{scope}/weight", (outputs, sizes.hidden), std=sizes.std)
    bias = b.parameter(f"{scope}/bias", (outputs,), std=_NOISE)
    return b.node("Gemm", read, weight, bias, scope=scope, transB=1)


def tied_head(b: GraphBuilder, sizes: TransformerSizes, scope: str, x: str, table: str, ids: str, head: Head) -> str:
    """A head tied to the embedding, x tableT: (batch, sequence, vocabulary), or (batch, vocabulary) of the last token.

    table (vocabulary, hidden), ids (batch, sequence). One Gemm does it, so the table need not be stored transposed too.
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
