"""SqueezeNet 1.1 (Iandola et al. 2016, in the cheaper form that its authors released later)."""

from onnx import ModelProto

from rlflow.errors import InputError
from rlflow.zoo.builder import Dimension, GraphBuilder
from rlflow.zoo.convolution import convolution

_LEAST_IMAGE = 21
_SQUEEZES = ((1, 1), (2, 2), (3, 3, 4, 4))
"""Channels of the fire modules' first convolutions between two poolings, in units of the width."""


def squeezenet1_1(
    *,
    width: int = 16,
    image: int = 224,
    batch: Dimension = 1,
    classes: int = 1000,
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """SqueezeNet 1.1: eight fire modules, each a narrow convolution, then two wide ones side by side, concatenated.

    Input image (batch, 3, image, image), batch a number or a symbol; output logits (batch, classes), which end in
    a Relu. `width`: channels of the narrowest convolution, 16 as published. Raises InputError for an image so
    small that the poolings leave nothing of it.
    """
    if image < _LEAST_IMAGE:
        raise InputError(
            f"squeezenet1_1: the poolings leave nothing of an image of {image} pixels; give {_LEAST_IMAGE} or more."
        )
    b = GraphBuilder("squeezenet1_1", seed=seed, opset=opset)
    x = b.input("image", (batch, 3, image, image))
    channels = 4 * width
    x = _convolution(b, "squeezenet1_1/stem", x, 3, channels, 3, stride=2, padded=False)
    for stage, squeezes in enumerate(_SQUEEZES):
        scope = f"squeezenet1_1/stage_{stage}"
        x = b.node("MaxPool", x, scope=scope, kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
        for module, squeeze in enumerate(squeezes):
            x = _fire(b, f"{scope}/fire_{module}", x, channels, squeeze * width)
            channels = 8 * squeeze * width
    x = _convolution(b, "squeezenet1_1/classifier", x, channels, classes, 1)
    x = b.node("GlobalAveragePool", x, scope="squeezenet1_1/pool")
    b.output("logits", b.node("Flatten", x, scope="squeezenet1_1/pool", axis=1), (batch, classes))
    return b.finish()


def _fire(b: GraphBuilder, scope: str, x: str, inputs: int, squeeze: int) -> str:
    """A fire module: `inputs` channels to `squeeze`, then to 8 `squeeze`, half by a 1x1 and half by a 3x3 kernel."""
    x = _convolution(b, f"{scope}/squeeze", x, inputs, squeeze, 1)
    expanded = [
        _convolution(b, f"{scope}/expand_{kernel}x{kernel}", x, squeeze, 4 * squeeze, kernel) for kernel in (1, 3)
    ]
    return b.node("Concat", *expanded, scope=scope, axis=1)


def _convolution(
    b: GraphBuilder, scope: str, x: str, inputs: int, outputs: int, kernel: int, *, stride: int = 1, padded: bool = True
) -> str:
    x = convolution(b, scope, x, inputs, outputs, (kernel, kernel), stride=stride, padded=padded)
    return b.node("Relu", x, scope=scope)
