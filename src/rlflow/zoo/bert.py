"""BERT of any size (Devlin et al. 2019), written the way torch's exporter writes it."""

from typing import Literal

import numpy as np
from onnx import ModelProto, TensorProto

from rlflow.errors import InputError
from rlflow.zoo.builder import Dimension, GraphBuilder
from rlflow.zoo.tokens import MASKED_SCORE, embedding, position_ids, token_head
from rlflow.zoo.transformer import LayerNorm, TransformerSizes, attention, feed_forward, layer_normalisation

_EPSILON = 1e-12


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
    elementary ones. Every parameter is drawn: gains near 1, biases near 0, none of them exactly. All of them
    matter but the key biases, which shift a row of scores by one number that softmax cancels.

    Raises InputError if the sizes do not fit together.
    """
    sizes = TransformerSizes(batch, sequence, hidden, heads, intermediate, layer_norm, _EPSILON)
    sizes.check("bert", opset)
    if isinstance(sequence, int) and sequence > positions:
        raise InputError(f"bert: sequence={sequence} exceeds positions={positions}; raise positions.")

    b = GraphBuilder("bert", seed=seed, opset=opset)
    input_ids = b.input("input_ids", (batch, sequence), TensorProto.INT64)
    token_type_ids = b.input("token_type_ids", (batch, sequence), TensorProto.INT64)
    mask = _additive_mask(b, sizes) if attention_mask else None

    x = _embeddings(b, sizes, input_ids, token_type_ids, vocabulary, positions)
    for layer in range(layers):
        scope = f"bert/layer_{layer}"
        y = attention(b, sizes, f"{scope}/attention", x, mask)
        x = _add_and_norm(b, sizes, f"{scope}/attention", y, x)
        x = _add_and_norm(b, sizes, scope, feed_forward(b, sizes, scope, x), x)

    if head == "cls":
        y = token_head(b, sizes, "bert/pooler", x, hidden)
        b.output("pooler_output", b.node("Tanh", y, scope="bert/pooler"), (batch, hidden))
    else:
        b.output("last_hidden_state", x, (batch, sequence, hidden))
    return b.finish()


def _additive_mask(b: GraphBuilder, sizes: TransformerSizes) -> str:
    """The mask to add to scores, (batch, 1, 1, sequence): 0 where a token is visible, very low where it is not."""
    scope = "bert/mask"
    mask = b.input("attention_mask", (sizes.batch, sizes.sequence), TensorProto.INT64)
    mask = b.node("Unsqueeze", mask, b.constant("head_axes", np.array([1, 2])), scope=scope)
    mask = b.node("Cast", mask, scope=scope, to=TensorProto.FLOAT)
    mask = b.node("Sub", b.constant("one", np.float32(1)), mask, scope=scope)
    return b.node("Mul", mask, b.constant("masked_score", MASKED_SCORE), scope=scope)


def _embeddings(
    b: GraphBuilder, sizes: TransformerSizes, input_ids: str, token_type_ids: str, vocabulary: int, positions: int
) -> str:
    scope = "bert/embeddings"
    words = embedding(b, sizes, f"{scope}/word", vocabulary, input_ids)
    types = embedding(b, sizes, f"{scope}/token_type", 2, token_type_ids)
    x = b.node("Add", words, types, scope=scope)
    ids = position_ids(b, sizes, f"{scope}/position_ids", input_ids, positions)
    x = b.node("Add", x, embedding(b, sizes, f"{scope}/position", positions, ids), scope=scope)
    return layer_normalisation(b, sizes, f"{scope}/layer_norm", x)


def _add_and_norm(b: GraphBuilder, sizes: TransformerSizes, scope: str, y: str, x: str) -> str:
    """LayerNorm(y + x): BERT normalises after the residual."""
    y = b.node("Add", y, x, scope=f"{scope}/residual")
    return layer_normalisation(b, sizes, f"{scope}/layer_norm", y)
