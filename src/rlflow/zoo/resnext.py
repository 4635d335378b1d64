"""ResNeXt-50 (Xie et al. 2017, Table 1), which TASO (Jia et al. 2019, section 7) and X-RLflow optimise."""

from onnx import ModelProto

from rlflow.errors import InputError
from rlflow.zoo.builder import Dimension, GraphBuilder
from rlflow.zoo.resnet import Layer, residual_network


def resnext50(
    *,
    width: int = 64,
    groups: int = 32,
    image: int = 224,
    batch: Dimension = 1,
    classes: int = 1000,
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """ResNeXt-50 (32x4d): the bottlenecks of ResNet-50 twice as wide, their 3x3 convolutions in `groups`.

    Input image (batch, 3, image, image), batch a number or a symbol; output logits (batch, classes). `width` is
    that of the first convolution, as in ResNet-50. As published (2 x 64 channels in 32 groups of 4), 175 nodes and
    25,028,904 parameters. Raises InputError if the groups do not divide the channels.
    """
    if 2 * width % groups:
        raise InputError(
            f"resnext50: {2 * width} channels, twice width={width}, cannot be divided among groups={groups}; "
            "choose sizes that divide."
        )

    def branch(width: int, stride: int) -> list[Layer]:
        return [Layer(2 * width, 1), Layer(2 * width, 3, stride, groups), Layer(4 * width, 1)]

    b = GraphBuilder("resnext50", seed=seed, opset=opset)
    return residual_network(b, (3, 4, 6, 3), branch, width, image, batch, classes)
