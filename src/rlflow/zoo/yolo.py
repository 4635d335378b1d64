"""YOLOv5 (Jocher 2020), a detector at three scales, made of cross-stage partial blocks (Wang et al. 2020).

A backbone halves the image five times. Its last three scales are joined twice: from coarse to fine by upsampling, from
fine to coarse by convolutions of stride 2. What results at each scale has a head of its own.
"""

import numpy as np
from onnx import ModelProto

from rlflow.errors import InputError
from rlflow.zoo.builder import Dimension, GraphBuilder
from rlflow.zoo.convolution import convolution, normalised_convolution

_STAGES = ((2, 1), (4, 2), (8, 3), (16, 1))
"""Channels, in widths of the first convolution, and bottlenecks of each stage of the backbone."""
_STRIDES = (8, 16, 32)
_ANCHORS = 3
_EPSILON = 1e-3
_GAIN = 0.95
"""Of each normalisation. SiLU lets through less of what is small than of what is large, and shortcuts add: with this
one, activations stay in bounds through sixty convolutions.
"""


def yolo_v5(
    *,
    width: int = 16,
    image: int = 640,
    batch: Dimension = 1,
    classes: int = 80,
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """YOLOv5n: a detector whose features are joined across three scales, by Resize, Concat and convolutions.

    Input image (batch, 3, image, image), batch a number or a symbol. Outputs boxes_8, boxes_16 and boxes_32, (batch,
    3 (5 + classes), image / s, image / s) at stride s: for each of three anchors, before the last sigmoid, four
    coordinates, whether anything is there, and a score for each class. `width` is that of the first convolution, of
    which all others are multiples. As published for the smallest, 256 nodes and 1,872,157 parameters.

    Raises InputError if the image cannot be halved five times.
    """
    if image % _STRIDES[-1]:
        raise InputError(f"yolo_v5: image={image} is not a multiple of {_STRIDES[-1]}; choose one that is.")
    b = GraphBuilder("yolo_v5", seed=seed, opset=opset)
    scales = _neck(b, width, _backbone(b, width, b.input("image", (batch, 3, image, image))))
    for stride, scale, channels in zip(_STRIDES, scales, (4 * width, 8 * width, 16 * width), strict=True):
        numbers = _ANCHORS * (5 + classes)
        boxes = convolution(b, f"yolo_v5/head_{stride}", scale, channels, numbers, (1, 1))
        b.output(f"boxes_{stride}", boxes, (batch, numbers, image // stride, image // stride))
    return b.finish()


def _backbone(b: GraphBuilder, width: int, image: str) -> tuple[str, str, str]:
    """The features at strides 8, 16 and 32, of 4, 8 and 16 widths."""
    x, channels = _layer(b, "yolo_v5/stem", image, 3, width, 6, stride=2), width
    features = []
    for stage, (multiple, bottlenecks) in enumerate(_STAGES):
        scope, outputs = f"yolo_v5/stage_{stage}", multiple * width
        x = _layer(b, f"{scope}/halve", x, channels, outputs, 3, stride=2)
        x = _partial(b, scope, x, outputs, outputs, bottlenecks=bottlenecks, shortcut=True)
        features.append(x)
        channels = outputs
    _, fine, middle, coarse = features
    return fine, middle, _pyramid(b, "yolo_v5/pyramid", coarse, channels)


def _neck(b: GraphBuilder, width: int, features: tuple[str, str, str]) -> tuple[str, str, str]:
    """The features of each scale, joined with those of the others; shapes stay the same."""
    fine, middle, coarse = features
    four, eight, sixteen = 4 * width, 8 * width, 16 * width
    narrow = _layer(b, "yolo_v5/down_16/narrow", coarse, sixteen, eight, 1)
    joined = _concat(b, "yolo_v5/down_16", _upsampled(b, "yolo_v5/down_16", narrow), middle)
    middle = _partial(b, "yolo_v5/down_16", joined, sixteen, eight)
    narrower = _layer(b, "yolo_v5/down_8/narrow", middle, eight, four, 1)
    joined = _concat(b, "yolo_v5/down_8", _upsampled(b, "yolo_v5/down_8", narrower), fine)
    fine = _partial(b, "yolo_v5/down_8", joined, eight, four)

    halved = _layer(b, "yolo_v5/up_16/halve", fine, four, four, 3, stride=2)
    middle = _partial(b, "yolo_v5/up_16", _concat(b, "yolo_v5/up_16", halved, narrower), eight, eight)
    halved = _layer(b, "yolo_v5/up_32/halve", middle, eight, eight, 3, stride=2)
    coarse = _partial(b, "yolo_v5/up_32", _concat(b, "yolo_v5/up_32", halved, narrow), sixteen, sixteen)
    return fine, middle, coarse


def _partial(
    b: GraphBuilder, scope: str, x: str, inputs: int, outputs: int, *, bottlenecks: int = 1, shortcut: bool = False
) -> str:
    """A cross-stage partial block: bottlenecks on one half of the channels, beside the other half, then joined."""
    half = outputs // 2
    y = _layer(b, f"{scope}/deep", x, inputs, half, 1)
    for index in range(bottlenecks):
        inner = f"{scope}/bottleneck_{index}"
        z = _layer(b, f"{inner}/conv_0", y, half, half, 1)
        z = _layer(b, f"{inner}/conv_1", z, half, half, 3)
        y = b.node("Add", y, z, scope=inner) if shortcut else z
    beside = _layer(b, f"{scope}/beside", x, inputs, half, 1)
    return _layer(b, f"{scope}/join", _concat(b, scope, y, beside), 2 * half, outputs, 1)


def _pyramid(b: GraphBuilder, scope: str, x: str, channels: int) -> str:
    """The largest values nearby, in windows of 5, 9 and 13 places, by pooling one, two and three times."""
    half = channels // 2
    pooled = [_layer(b, f"{scope}/narrow", x, channels, half, 1)]
    for _ in range(3):
        window = {"kernel_shape": [5, 5], "pads": [2, 2, 2, 2], "strides": [1, 1]}
        pooled.append(b.node("MaxPool", pooled[-1], scope=scope, **window))
    return _layer(b, f"{scope}/join", _concat(b, scope, *pooled), 4 * half, channels, 1)


def _layer(b: GraphBuilder, scope: str, x: str, inputs: int, outputs: int, kernel: int, *, stride: int = 1) -> str:
    """SiLU(y) = y sigmoid(y) of a normalised convolution y."""
    y = normalised_convolution(
        b, scope, x, inputs, outputs, (kernel, kernel), stride=stride, epsilon=_EPSILON, gain=_GAIN
    )
    return b.node("Mul", y, b.node("Sigmoid", y, scope=scope), scope=scope)


def _upsampled(b: GraphBuilder, scope: str, x: str) -> str:
    """Twice the height and width: each place four times."""
    scales = b.constant("twice", np.array([1, 1, 2, 2], dtype=np.float32))
    how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return b.node("Resize", x, "", scales, scope=scope, **how)


def _concat(b: GraphBuilder, scope: str, *parts: str) -> str:
    return b.node("Concat", *parts, scope=scope, axis=1)
