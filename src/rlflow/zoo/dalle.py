"""A transformer over text and image tokens after DALL-E (Ramesh et al. 2021, section 2.2 and appendix B.1).

DALL-E itself has 64 layers of 3968 units and 12 billion parameters. This is its architecture at a size that can be
searched on one machine, as is X-RLflow's. Its tokens are inputs, and padding of the text is left out.

Text tokens come first and see the text before them. An image token sees all of the text, and of the image only a part,
by its layer's pattern (`_visible`). On a 4 x 4 grid, token 5 (row 1, column 1) sees tokens 1 to 5 in a "row" layer and
tokens 1 and 5 in a "column" layer. The patterns are constant masks, so all layers are the same nodes.
"""

from typing import Literal

import numpy as np
from onnx import ModelProto, TensorProto

from rlflow.zoo.builder import Dimension, GraphBuilder, lengths
from rlflow.zoo.tokens import Head, additive_mask, embedding, token
from rlflow.zoo.transformer import (
    LayerNorm,
    TransformerSizes,
    layer_normalisation,
    linear,
    merged_attention,
    pre_norm_layer,
)

_EPSILON = 1e-5
_REACH = 5
"""Pixels to each side that convolutional attention sees: the paper's kernel is 11 wide."""

_Pattern = Literal["row", "column", "convolution"]


def dalle(
    *,
    layers: int = 12,
    hidden: int = 512,
    heads: int = 8,
    intermediate: int = 2048,
    text: int = 64,
    grid: int = 16,
    batch: Dimension = 1,
    text_vocabulary: int = 16384,
    image_vocabulary: int = 8192,
    head: Head = "all",
    layer_norm: LayerNorm = "fused",
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """DALL-E-like: one causal transformer over text tokens, then image tokens, with sparse attention among the latter.

    Inputs text (batch, text) and image (batch, grid x grid), token ids in int64, batch a number or a symbol; the image
    is in raster order. Output logits (batch, grid x grid, image_vocabulary) of the image tokens, or with head="last"
    (batch, image_vocabulary) of the last one alone. An image token's position is the sum of a row's and a column's
    vector. Of the image, a token sees the tokens back to the one above it (pattern row), those above it (column, the
    second of every four layers), or its neighbourhood of 11 x 11 (convolution, the last layer); never a later one. By
    default 383 nodes and 54,664,192 parameters.

    Raises InputError if the sizes do not fit together.
    """
    pixels = grid * grid
    sizes = TransformerSizes(batch, text + pixels, hidden, heads, intermediate, layer_norm, _EPSILON)
    sizes.check("dalle", opset)

    b = GraphBuilder("dalle", seed=seed, opset=opset)
    x = b.node(
        "Concat",
        _text_embeddings(b, sizes, text, text_vocabulary),
        _image_embeddings(b, sizes, grid, image_vocabulary),
        scope="dalle/embeddings",
        axis=1,
    )
    for layer in range(layers):
        pattern = _pattern(layer, layers)
        mask = b.constant(f"{pattern}_mask", additive_mask(_visible(text, grid, pattern)))
        x = pre_norm_layer(b, sizes, f"dalle/layer_{layer}", x, attend=merged_attention, mask=mask)

    x = layer_normalisation(b, sizes, "dalle/layer_norm", x)
    if head == "last":
        x = token(b, "dalle/head", x, "last")
    else:
        x = _image_tokens(b, x, text, pixels)
    y = linear(b, sizes, "dalle/head", x, hidden, image_vocabulary)
    b.output("logits", y, (batch, image_vocabulary) if head == "last" else (batch, pixels, image_vocabulary))
    return b.finish()


def _image_tokens(b: GraphBuilder, x: str, text: int, pixels: int) -> str:
    """The tokens after the text, (batch, pixels, hidden)."""
    ends = b.constant("first_pixel", np.array([text])), b.constant("last_pixel", np.array([text + pixels]))
    return b.node("Slice", x, *ends, b.constant("token_axis", np.array([1])), scope="dalle/head")


def _text_embeddings(b: GraphBuilder, sizes: TransformerSizes, text: int, vocabulary: int) -> str:
    scope = "dalle/embeddings/text"
    x = embedding(b, sizes, scope, vocabulary, b.input("text", (sizes.batch, text), TensorProto.INT64))
    places = b.parameter(f"{scope}/position/weight", (1, text, sizes.hidden), std=sizes.std)
    return b.node("Add", x, places, scope=scope)


def _image_embeddings(b: GraphBuilder, sizes: TransformerSizes, grid: int, vocabulary: int) -> str:
    scope = "dalle/embeddings/image"
    x = embedding(b, sizes, scope, vocabulary, b.input("image", (sizes.batch, grid * grid), TensorProto.INT64))
    rows = b.parameter(f"{scope}/row/weight", (1, grid, 1, sizes.hidden), std=sizes.std)
    columns = b.parameter(f"{scope}/column/weight", (1, 1, grid, sizes.hidden), std=sizes.std)
    places = b.node("Add", rows, columns, scope=f"{scope}/position")
    raster = b.constant("raster", lengths(1, grid * grid, sizes.hidden))
    return b.node("Add", x, b.node("Reshape", places, raster, scope=f"{scope}/position"), scope=scope)


def _pattern(layer: int, layers: int) -> _Pattern:
    if layer == layers - 1:
        return "convolution"
    return "column" if layer % 4 == 1 else "row"


def _visible(text: int, grid: int, pattern: _Pattern) -> np.ndarray:
    """The tokens that each token attends to, (tokens, tokens) bool: itself always, a later one never."""
    visible = np.tri(text + grid * grid, dtype=bool)
    place = np.arange(grid * grid)
    row, column = np.divmod(place, grid)

    # from the query (first axis) back to the key (second axis): in tokens, in rows, in columns
    back, down, aside = (axis[:, None] - axis[None] for axis in (place, row, column))
    near = {
        "row": back <= grid,
        "column": aside == 0,
        "convolution": (down <= _REACH) & (np.abs(aside) <= _REACH),
    }[pattern]
    visible[text:, text:] &= near
    return visible
