"""Vision Transformer of any size (Dosovitskiy et al. 2021)."""

from onnx import ModelProto

from rlflow.errors import InputError
from rlflow.zoo.builder import Dimension, GraphBuilder, lengths
from rlflow.zoo.convolution import convolution
from rlflow.zoo.tokens import token_head
from rlflow.zoo.transformer import LayerNorm, TransformerSizes, layer_normalisation, pre_norm_layer

_EPSILON = 1e-6


def vit(
    *,
    layers: int = 12,
    hidden: int = 768,
    heads: int = 12,
    intermediate: int = 3072,
    patch: int = 16,
    image: int = 224,
    batch: Dimension = 1,
    classes: int = 1000,
    layer_norm: LayerNorm = "fused",
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """Vision Transformer: patches by a convolution, class token, learned positions; ViT-Base unless told otherwise.

    Input image (batch, 3, image, image), batch a number or a symbol; output logits (batch, classes), read from the
    class token. The encoder is BERT's, normalised before each block instead of after it. `layer_norm` is one
    LayerNormalization node (ONNX 17) or nine elementary ones. As in BERT, softmax cancels the key biases.

    Raises InputError if the sizes do not fit together.
    """
    if image % patch:
        raise InputError(f"vit: image={image} is not a multiple of patch={patch}; choose sizes that divide.")
    tokens = (image // patch) ** 2 + 1
    sizes = TransformerSizes(batch, tokens, hidden, heads, intermediate, layer_norm, _EPSILON)
    sizes.check("vit", opset)
    b = GraphBuilder("vit", seed=seed, opset=opset)
    x = _embeddings(b, sizes, b.input("image", (batch, 3, image, image)), patch, tokens)
    for layer in range(layers):
        x = pre_norm_layer(b, sizes, f"vit/layer_{layer}", x)
    x = layer_normalisation(b, sizes, "vit/layer_norm", x)
    b.output("logits", token_head(b, sizes, "vit/classifier", x, classes), (batch, classes))
    return b.finish()


def _embeddings(b: GraphBuilder, sizes: TransformerSizes, image: str, patch: int, tokens: int) -> str:
    """The class token, then the patches row by row, each plus its position: (batch, tokens, hidden)."""
    scope = "vit/embeddings"
    x = convolution(b, f"{scope}/patch", image, 3, sizes.hidden, (patch, patch), stride=patch, padded=False)
    flat = b.constant("flat_patches", lengths(sizes.batch, sizes.hidden, tokens - 1))
    x = b.node("Reshape", x, flat, scope=f"{scope}/patch")
    x = b.node("Transpose", x, scope=f"{scope}/patch", perm=(0, 2, 1))
    x = b.node("Concat", _class_token(b, sizes, image), x, scope=scope, axis=1)
    # About as large as a patch, so that neither the class token nor the positions are lost beside the patches.
    positions = b.parameter(f"{scope}/position/weight", (1, tokens, sizes.hidden), std=1.0)
    return b.node("Add", x, positions, scope=scope)


def _class_token(b: GraphBuilder, sizes: TransformerSizes, image: str) -> str:
    """The class token (batch, 1, hidden): one learned vector, the same for every image."""
    scope = "vit/embeddings/class_token"
    token = b.parameter(f"{scope}/weight", (1, 1, sizes.hidden), std=1.0)
    if sizes.batch == 1:
        return token
    if isinstance(sizes.batch, int):
        shape = b.constant("class_token_shape", lengths(sizes.batch, 1, sizes.hidden))
    else:
        images = b.node("Shape", image, scope=scope, start=0, end=1)
        shape = b.node("Concat", images, b.constant("token_shape", lengths(1, sizes.hidden)), scope=scope, axis=0)
    token = b.node("Expand", token, shape, scope=scope)
    b.declare(token, (sizes.batch, 1, sizes.hidden))
    return token
