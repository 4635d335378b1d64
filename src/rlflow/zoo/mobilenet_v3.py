"""MobileNetV3-Small (Howard et al. 2019, Table 2): one activation that tools for ONNX write in two ways."""

from onnx import ModelProto

from rlflow.zoo.builder import Dimension, GraphBuilder
from rlflow.zoo.convolution import convolution, fully_connected, normalised_convolution

_PUBLISHED_WIDTH = 8
_BLOCKS = (
    (3, 16, 16, 8, "Relu", 2),
    (3, 72, 24, 0, "Relu", 2),
    (3, 88, 24, 0, "Relu", 1),
    (5, 96, 40, 24, "HardSwish", 2),
    (5, 240, 40, 64, "HardSwish", 1),
    (5, 240, 40, 64, "HardSwish", 1),
    (5, 120, 48, 32, "HardSwish", 1),
    (5, 144, 48, 40, "HardSwish", 1),
    (5, 288, 96, 72, "HardSwish", 2),
    (5, 576, 96, 144, "HardSwish", 1),
    (5, 576, 96, 144, "HardSwish", 1),
)
"""Kernel, channels in the block and after it, channels of the squeeze (0: there is none), activation, stride."""
_STEM, _LAST, _HIDDEN = 16, 576, 1024
_EPSILON = 1e-3


def mobilenet_v3(
    *,
    width: int = _PUBLISHED_WIDTH,
    image: int = 224,
    batch: Dimension = 1,
    classes: int = 1000,
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """MobileNetV3-Small: inverted residuals, most of which weigh their channels by what the whole image has in them.

    Input image (batch, 3, image, image), batch a number or a symbol; output logits (batch, classes). `width` replaces
    the 8 of which every published number of channels is a multiple. As published, 156 nodes and 2,542,856 parameters.
    Hard swish is ONNX's HardSwish (opset 14), as torch exports it.
    """
    b = GraphBuilder("mobilenet_v3", seed=seed, opset=opset)
    channels = _scaled(_STEM, width)
    x = b.input("image", (batch, 3, image, image))
    x = normalised_convolution(b, "mobilenet_v3/stem", x, 3, channels, (3, 3), stride=2, epsilon=_EPSILON)
    x = b.node("HardSwish", x, scope="mobilenet_v3/stem")

    for number, (kernel, inner, outputs, squeezed, activation, stride) in enumerate(_BLOCKS):
        widths = (channels, _scaled(inner, width), _scaled(outputs, width))
        scope = f"mobilenet_v3/block_{number}"
        x = _inverted_residual(b, scope, x, widths, _scaled(squeezed, width), kernel, activation, stride)
        channels = widths[-1]

    last, hidden = _scaled(_LAST, width), _scaled(_HIDDEN, width)
    x = normalised_convolution(b, "mobilenet_v3/last", x, channels, last, (1, 1), epsilon=_EPSILON)
    x = b.node("HardSwish", x, scope="mobilenet_v3/last")
    x = b.node("GlobalAveragePool", x, scope="mobilenet_v3/pool")
    x = b.node("Flatten", x, scope="mobilenet_v3/pool", axis=1)
    x = fully_connected(b, "mobilenet_v3/hidden", x, last, hidden, std=last**-0.5)
    x = b.node("HardSwish", x, scope="mobilenet_v3/hidden")
    logits = fully_connected(b, "mobilenet_v3/classifier", x, hidden, classes, std=hidden**-0.5)
    b.output("logits", logits, (batch, classes))
    return b.finish()


def _inverted_residual(
    b: GraphBuilder,
    scope: str,
    x: str,
    widths: tuple[int, int, int],
    squeezed: int,
    kernel: int,
    activation: str,
    stride: int,
) -> str:
    """narrow(excite(filter(widen(x)))), plus x if the shape stays the same. widths: channels before, inside, after."""
    before, inside, after = widths
    y = x
    if inside != before:
        y = normalised_convolution(b, f"{scope}/widen", y, before, inside, (1, 1), epsilon=_EPSILON)
        y = b.node(activation, y, scope=f"{scope}/widen")
    y = normalised_convolution(
        b, f"{scope}/filter", y, inside, inside, (kernel, kernel), stride=stride, groups=inside, epsilon=_EPSILON
    )
    y = b.node(activation, y, scope=f"{scope}/filter")
    if squeezed:
        y = _excited(b, f"{scope}/excite", y, inside, squeezed)
    y = normalised_convolution(b, f"{scope}/narrow", y, inside, after, (1, 1), epsilon=_EPSILON)
    return b.node("Add", x, y, scope=scope) if stride == 1 and before == after else y


def _excited(b: GraphBuilder, scope: str, x: str, channels: int, squeezed: int) -> str:
    """Squeeze and excitation: each channel times a number from 0 to 1 that depends on the means of all."""
    y = b.node("GlobalAveragePool", x, scope=scope)
    y = convolution(b, f"{scope}/squeeze", y, channels, squeezed, (1, 1))
    y = b.node("Relu", y, scope=f"{scope}/squeeze")
    y = convolution(b, f"{scope}/expand", y, squeezed, channels, (1, 1))
    y = b.node("HardSigmoid", y, scope=f"{scope}/expand", alpha=1 / 6)
    return b.node("Mul", y, x, scope=scope)


def _scaled(published: int, width: int) -> int:
    return published * width // _PUBLISHED_WIDTH
