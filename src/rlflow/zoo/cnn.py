"""A small convolutional classifier, written as an exporter would write it."""

from itertools import pairwise

from onnx import ModelProto

from rlflow.errors import InputError
from rlflow.zoo.builder import Dimension, GraphBuilder
from rlflow.zoo.convolution import batch_normalisation, convolution, pooled_classifier


def conv(
    *,
    blocks: int = 2,
    channels: int = 16,
    image: int = 32,
    batch: Dimension = 1,
    classes: int = 10,
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """Convolutional classifier: Conv, BatchNormalization, Relu, MaxPool blocks and a Gemm.

    Input image (batch, 3, image, image), batch a number or a symbol; output logits (batch, classes).
    Each block halves the image and doubles the channels. Raises InputError if nothing is left of the image.
    """
    if image >> blocks == 0:
        raise InputError(f"conv: {blocks} blocks halve an image of {image} pixels to nothing; use fewer blocks.")
    b = GraphBuilder("conv", seed=seed, opset=opset)
    x = b.input("image", (batch, 3, image, image))
    widths = [3, *(channels << block for block in range(blocks))]
    for block, (fan_in, fan_out) in enumerate(pairwise(widths)):
        scope = f"conv/block_{block}"
        x = convolution(b, scope, x, fan_in, fan_out, (3, 3))
        x = batch_normalisation(b, scope, x, fan_out)
        x = b.node("Relu", x, scope=scope)
        x = b.node("MaxPool", x, scope=scope, kernel_shape=[2, 2], strides=[2, 2])
    b.output("logits", pooled_classifier(b, "conv", x, widths[-1], classes), (batch, classes))
    return b.finish()
