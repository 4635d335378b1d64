"""ResNet-18 and ResNet-50 (He et al. 2016), the latter with its stride in the 3x3 convolutions (v1.5)."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from onnx import ModelProto

from rlflow.zoo.builder import Dimension, GraphBuilder
from rlflow.zoo.convolution import normalised_convolution, pooled_classifier

# A block adds the variance of its branch to that of its input; at this gain, sixteen blocks keep it in bounds.
_BRANCH_GAIN = 0.25


class Layer(NamedTuple):
    """One convolution of a branch."""

    channels: int
    kernel: int
    stride: int = 1
    groups: int = 1


Branch = Callable[[int, int], list[Layer]]
"""A function from a stage's width and a block's stride to the convolutions beside the block's shortcut."""


def resnet18(
    *,
    width: int = 64,
    image: int = 224,
    batch: Dimension = 1,
    classes: int = 1000,
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """ResNet-18: eight residual blocks of two 3x3 convolutions.

    Input image (batch, 3, image, image), batch a number or a symbol; output logits (batch, classes). `width` is
    that of the first convolution; the published model's other widths are multiples of its 64.
    """
    b = GraphBuilder("resnet18", seed=seed, opset=opset)
    return residual_network(b, (2, 2, 2, 2), _basic, width, image, batch, classes)


def resnet50(
    *,
    width: int = 64,
    image: int = 224,
    batch: Dimension = 1,
    classes: int = 1000,
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """ResNet-50: sixteen residual blocks of a 1x1, a 3x3 and a widening 1x1 convolution.

    Input image (batch, 3, image, image), batch a number or a symbol; output logits (batch, classes). `width` is
    that of the first convolution; the published model's other widths are multiples of its 64.
    """
    b = GraphBuilder("resnet50", seed=seed, opset=opset)
    return residual_network(b, (3, 4, 6, 3), _bottleneck, width, image, batch, classes)


def _basic(width: int, stride: int) -> list[Layer]:
    return [Layer(width, 3, stride), Layer(width, 3)]


def _bottleneck(width: int, stride: int) -> list[Layer]:
    return [Layer(width, 1), Layer(width, 3, stride), Layer(4 * width, 1)]


def residual_network(
    b: GraphBuilder,
    stages: Sequence[int],
    branch: Branch,
    width: int,
    image: int,
    batch: Dimension,
    classes: int,
) -> ModelProto:
    """Stem, stages of residual blocks, classifier.

    stages: the number of blocks of each stage. Each stage after the first halves the image and doubles the width.
    """
    x = b.input("image", (batch, 3, image, image))
    x = normalised_convolution(b, f"{b.name}/stem", x, 3, width, (7, 7), stride=2)
    x = b.node("Relu", x, scope=f"{b.name}/stem")
    x = b.node("MaxPool", x, scope=f"{b.name}/stem", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2])
    channels = width
    for stage, blocks in enumerate(stages):
        for block in range(blocks):
            halving = stage > 0 and block == 0
            convolutions = branch(width << stage, 2 if halving else 1)
            x = _residual(b, f"{b.name}/stage_{stage}/block_{block}", x, channels, convolutions)
            channels = convolutions[-1].channels
    b.output("logits", pooled_classifier(b, b.name, x, channels, classes), (batch, classes))
    return b.finish()


def _residual(b: GraphBuilder, scope: str, x: str, inputs: int, branch: Sequence[Layer]) -> str:
    """relu(branch(x) + x), with x projected by a 1x1 convolution if the branch changes the shape."""
    y, channels, total_stride = x, inputs, 1
    for index, (outputs, kernel, stride, groups) in enumerate(branch):
        if index > 0:
            y = b.node("Relu", y, scope=f"{scope}/conv_{index - 1}")
        gain = _BRANCH_GAIN if index == len(branch) - 1 else 1.0
        inner = f"{scope}/conv_{index}"
        y = normalised_convolution(
            b, inner, y, channels, outputs, (kernel, kernel), stride=stride, groups=groups, gain=gain
        )
        channels, total_stride = outputs, total_stride * stride

    if channels != inputs or total_stride > 1:
        x = normalised_convolution(b, f"{scope}/shortcut", x, inputs, channels, (1, 1), stride=total_stride)
    return b.node("Relu", b.node("Add", y, x, scope=scope), scope=scope)
