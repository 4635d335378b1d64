"""VGG-19 (Simonyan and Zisserman 2015, Table 1, column E), one of Tensat's graphs."""

from math import sqrt

from onnx import ModelProto

from rlflow.errors import InputError
from rlflow.zoo.builder import Dimension, GraphBuilder
from rlflow.zoo.convolution import convolution, fully_connected

_STAGES = ((1, 2), (2, 2), (4, 4), (8, 4), (8, 4))
"""Channels, in units of the width, and convolutions before each pooling."""


def vgg19(
    *,
    width: int = 64,
    hidden: int = 4096,
    image: int = 224,
    batch: Dimension = 1,
    classes: int = 1000,
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """VGG-19: sixteen 3x3 convolutions in a row and three fully connected layers.

    Input image (batch, 3, image, image), batch a number or a symbol; output logits (batch, classes). `width`: channels
    of the first convolution; `hidden`: units of the fully connected layers, the first of which reads every pixel that
    five poolings leave. As published, 43 nodes and 143,667,240 parameters. Raises InputError for an image so small that
    the poolings leave nothing of it.
    """
    left = image >> len(_STAGES)
    if left == 0:
        raise InputError(
            f"vgg19: the poolings leave nothing of an image of {image} pixels; give {1 << len(_STAGES)} or more."
        )
    b = GraphBuilder("vgg19", seed=seed, opset=opset)
    x, channels = b.input("image", (batch, 3, image, image)), 3
    for stage, (factor, convolutions) in enumerate(_STAGES):
        scope = f"vgg19/stage_{stage}"
        for index in range(convolutions):
            x = convolution(b, f"{scope}/conv_{index}", x, channels, factor * width, (3, 3))
            x = b.node("Relu", x, scope=f"{scope}/conv_{index}")
            channels = factor * width
        x = b.node("MaxPool", x, scope=scope, kernel_shape=[2, 2], strides=[2, 2])

    x = b.node("Flatten", x, scope="vgg19/classifier", axis=1)
    units = [channels * left * left, hidden, hidden, classes]
    for index in range(3):
        scope, inputs = f"vgg19/classifier/layer_{index}", units[index]
        x = fully_connected(b, scope, x, inputs, units[index + 1], std=sqrt(2 / inputs))
        if index < 2:
            x = b.node("Relu", x, scope=scope)
    b.output("logits", x, (batch, classes))
    return b.finish()
