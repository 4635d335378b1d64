"""GPT-2 of any size (Radford et al. 2019, section 2.3)."""

from onnx import ModelProto, TensorProto

from rlflow.errors import InputError
from rlflow.zoo.builder import Dimension, GraphBuilder
from rlflow.zoo.tokens import Head, causal_mask, embedding, position_ids, tied_head
from rlflow.zoo.transformer import (
    LayerNorm,
    TransformerSizes,
    gelu_tanh,
    layer_normalisation,
    merged_attention,
    pre_norm_layer,
)

_EPSILON = 1e-5


def gpt2(
    *,
    layers: int = 12,
    hidden: int = 768,
    heads: int = 12,
    intermediate: int = 3072,
    sequence: Dimension = 128,
    batch: Dimension = 1,
    vocabulary: int = 50257,
    positions: int = 1024,
    head: Head = "all",
    layer_norm: LayerNorm = "fused",
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """GPT-2: causal attention with merged projections, GELU by tanh, a head that is the embedding; small by default.

    Input input_ids (batch, sequence) int64, both numbers or symbols. Output logits (batch, sequence, vocabulary), or
    with head="last" (batch, vocabulary) for the token after the last, the only one that decoding reads. `layer_norm` is
    one LayerNormalization node (ONNX 17) or nine elementary ones. GPT-2 small has 415 nodes and 124,439,808 parameters.

    Raises InputError if the sizes do not fit together.
    """
    sizes = TransformerSizes(batch, sequence, hidden, heads, intermediate, layer_norm, _EPSILON)
    sizes.check("gpt2", opset)
    if isinstance(sequence, int) and sequence > positions:
        raise InputError(f"gpt2: sequence={sequence} exceeds positions={positions}; raise positions.")

    b = GraphBuilder("gpt2", seed=seed, opset=opset)
    ids = b.input("input_ids", (batch, sequence), TensorProto.INT64)
    words = embedding(b, sizes, "gpt2/embeddings/word", vocabulary, ids)
    places = position_ids(b, sizes, "gpt2/embeddings/position_ids", ids, positions)
    places = embedding(b, sizes, "gpt2/embeddings/position", positions, places)
    x = b.node("Add", words, places, scope="gpt2/embeddings")

    mask = causal_mask(b, sizes, "gpt2/mask", ids, positions)
    for layer in range(layers):
        scope = f"gpt2/layer_{layer}"
        x = pre_norm_layer(b, sizes, scope, x, attend=merged_attention, mask=mask, activation=gelu_tanh)

    x = layer_normalisation(b, sizes, "gpt2/layer_norm", x)
    y = tied_head(b, sizes, "gpt2/head", x, "gpt2/embeddings/word/weight", ids, head)
    b.output("logits", y, (batch, vocabulary) if head == "last" else (batch, sequence, vocabulary))
    return b.finish()
