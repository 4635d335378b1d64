"""A small convolutional classifier, as a user would export it."""

from itertools import pairwise
from math import sqrt

import numpy as np
from onnx import ModelProto

from rlflow.errors import InputError
from rlflow.zoo.builder import Dimension, GraphBuilder

_NOISE = 0.1
_KERNEL = 3
_EPSILON = 1e-5


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
    Channels double from block to block, each of which halves the image. Raises InputError if nothing is left.
    """
    if image >> blocks == 0:
        raise InputError(f"conv: {blocks} blocks halve an image of {image} pixels to nothing; use fewer blocks.")
    b = GraphBuilder("conv", seed=seed, opset=opset)
    x = b.input("image", (batch, 3, image, image))
    widths = [3, *(channels << block for block in range(blocks))]
    for block, (fan_in, fan_out) in enumerate(pairwise(widths)):
        x = _block(b, f"conv/block_{block}", x, fan_in, fan_out)
    x = b.node("GlobalAveragePool", x, scope="conv/pool")
    x = b.node("Flatten", x, scope="conv/pool", axis=1)
    weight = b.parameter("conv/classifier/weight", (classes, widths[-1]), std=1 / sqrt(widths[-1]))
    bias = b.parameter("conv/classifier/bias", (classes,), std=_NOISE)
    b.output("logits", b.node("Gemm", x, weight, bias, scope="conv/classifier", transB=1), (batch, classes))
    return b.finish()


def _block(b: GraphBuilder, scope: str, x: str, fan_in: int, fan_out: int) -> str:
    shape = (fan_out, fan_in, _KERNEL, _KERNEL)
    weight = b.parameter(f"{scope}/weight", shape, std=sqrt(2 / (fan_in * _KERNEL**2)))
    bias = b.parameter(f"{scope}/bias", (fan_out,), std=_NOISE)
    x = b.node("Conv", x, weight, bias, scope=scope, kernel_shape=[_KERNEL, _KERNEL], pads=[1, 1, 1, 1])
    x = b.node("BatchNormalization", x, *_normalisation(b, scope, fan_out), scope=scope, epsilon=_EPSILON)
    x = b.node("Relu", x, scope=scope)
    return b.node("MaxPool", x, scope=scope, kernel_shape=[2, 2], strides=[2, 2])


def _normalisation(b: GraphBuilder, scope: str, channels: int) -> tuple[str, str, str, str]:
    """Gain, shift, running mean and running variance, in BatchNormalization's order."""
    gain = b.parameter(f"{scope}/gain", (channels,), mean=1.0, std=_NOISE)
    shift = b.parameter(f"{scope}/shift", (channels,), std=_NOISE)
    mean = b.parameter(f"{scope}/mean", (channels,), std=_NOISE)
    variance = b.random(f"{scope}/variance").uniform(0.5, 1.5, channels).astype(np.float32)
    return gain, shift, mean, b.initialiser(f"{scope}/variance", variance)
