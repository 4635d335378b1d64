"""MobileNetV2 (Sandler et al. 2018, Table 2), one of Tensat's graphs."""

import numpy as np
from onnx import ModelProto

from rlflow.zoo.builder import Dimension, GraphBuilder
from rlflow.zoo.convolution import normalised_convolution, pooled_classifier

_PUBLISHED_WIDTH = 8
_STAGES = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""The paper's t, c, n and s: expansion, channels, blocks, and the stride of the first block."""
_STEM, _LAST = 32, 1280


def mobilenet_v2(
    *,
    width: int = _PUBLISHED_WIDTH,
    image: int = 224,
    batch: Dimension = 1,
    classes: int = 1000,
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """MobileNetV2: seventeen inverted residuals, which widen, filter each channel by itself, and narrow again.

    Input image (batch, 3, image, image), batch a number or a symbol; output logits (batch, classes). `width` replaces
    the 8 of which every published number of channels is a multiple. As published, 152 nodes and 3,504,872 parameters.
    ReLU6 is a Clip, as torch exports it.
    """
    b = GraphBuilder("mobilenet_v2", seed=seed, opset=opset)
    channels = _STEM * width // _PUBLISHED_WIDTH
    x = b.input("image", (batch, 3, image, image))
    x = normalised_convolution(b, "mobilenet_v2/stem", x, 3, channels, (3, 3), stride=2)
    x = _relu6(b, "mobilenet_v2/stem", x)

    for stage, (expansion, published, blocks, first_stride) in enumerate(_STAGES):
        outputs = published * width // _PUBLISHED_WIDTH
        for block in range(blocks):
            scope = f"mobilenet_v2/stage_{stage}/block_{block}"
            stride = first_stride if block == 0 else 1
            x = _inverted_residual(b, scope, x, channels, outputs, expansion, stride)
            channels = outputs

    last = _LAST * width // _PUBLISHED_WIDTH
    x = normalised_convolution(b, "mobilenet_v2/last", x, channels, last, (1, 1))
    x = _relu6(b, "mobilenet_v2/last", x)
    b.output("logits", pooled_classifier(b, "mobilenet_v2", x, last, classes), (batch, classes))
    return b.finish()


def _inverted_residual(
    b: GraphBuilder, scope: str, x: str, inputs: int, outputs: int, expansion: int, stride: int
) -> str:
    """narrow(filter(widen(x))), plus x if the shape stays the same; there is no activation at the narrow end."""
    y, channels = x, expansion * inputs
    if expansion > 1:
        y = normalised_convolution(b, f"{scope}/widen", y, inputs, channels, (1, 1))
        y = _relu6(b, f"{scope}/widen", y)
    y = normalised_convolution(b, f"{scope}/filter", y, channels, channels, (3, 3), stride=stride, groups=channels)
    y = _relu6(b, f"{scope}/filter", y)
    y = normalised_convolution(b, f"{scope}/narrow", y, channels, outputs, (1, 1))
    return b.node("Add", x, y, scope=scope) if stride == 1 and inputs == outputs else y


def _relu6(b: GraphBuilder, scope: str, x: str) -> str:
    return b.node("Clip", x, b.constant("zero", np.float32(0)), b.constant("six", np.float32(6)), scope=scope)
