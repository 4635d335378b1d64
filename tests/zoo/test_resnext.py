"""ResNeXt-50 against torch modules; transformers has none."""

from collections import OrderedDict

import numpy as np
import pytest
import torch
from support.twins import Unit, twin_output
from torch import nn

from rlflow import zoo
from rlflow.errors import InputError

DEPTH = 50 * 3 + 16
"""Conv, BatchNormalization and Relu of each layer on the longest path, and an Add of each block."""


class Bottleneck(nn.Module):
    """Figure 3(c) of Xie et al. (2017)."""

    def __init__(self, inputs: int, inner: int, outputs: int, stride: int, groups: int) -> None:
        super().__init__()
        self.conv_0 = Unit(inputs, inner)
        self.conv_1 = Unit(inner, inner, 3, stride, groups)
        self.conv_2 = Unit(inner, outputs)
        if inputs != outputs:
            self.shortcut = Unit(inputs, outputs, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.conv_2(self.conv_1(self.conv_0(x).relu()).relu())
        return (y + (self.shortcut(x) if hasattr(self, "shortcut") else x)).relu()


def resnext(width: int, groups: int, classes: int) -> nn.Sequential:
    """Table 1 of Xie et al. (2017): 3, 4, 6 and 3 blocks, of inner widths 2 and outer widths 4 times that of ResNet."""
    layers: OrderedDict[str, nn.Module] = OrderedDict(
        stem=Unit(3, width, 7, 2), relu=nn.ReLU(), pool=nn.MaxPool2d(3, 2, 1)
    )
    inputs = width
    for stage, blocks in enumerate((3, 4, 6, 3)):
        outputs = 4 * width * 2**stage
        names: OrderedDict[str, nn.Module] = OrderedDict()
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            names[f"block_{block}"] = Bottleneck(inputs, outputs // 2, outputs, stride, groups)
            inputs = outputs
        layers[f"stage_{stage}"] = nn.Sequential(names)
    layers.update(mean=nn.AdaptiveAvgPool2d(1), flat=nn.Flatten(), classifier=nn.Linear(inputs, classes))
    return nn.Sequential(layers)


@pytest.mark.parametrize(("width", "groups", "size"), [(8, 4, 64), (16, 32, 33)])
def test_equals_torch(width, groups, size, run, parameters, assert_close):
    """The second with the published 32 groups, of one channel each, and odd sizes."""
    model = zoo.build("resnext50", width=width, groups=groups, image=size, batch="batch", classes=10)
    image = np.random.default_rng(0).standard_normal((2, 3, size, size), dtype=np.float32)
    expected = twin_output(resnext(width, groups, 10), parameters(model), image)
    assert_close(run(model, {"image": image})["logits"], expected, depth=DEPTH, terms=32 * width)


def test_groups_matter():
    """As many groups as published: an eighth of the weights of the 3x3 convolutions of four groups."""
    few, many = (zoo.build("resnext50", width=16, groups=groups, classes=10) for groups in (4, 32))
    sizes = [
        {tensor.name: np.prod(tensor.dims) for tensor in model.graph.initializer if "conv_1/weight" in tensor.name}
        for model in (few, many)
    ]
    assert len(sizes[0]) == 16
    assert all(sizes[0][name] == 8 * sizes[1][name] for name in sizes[0])


def test_groups_that_do_not_divide_are_refused():
    with pytest.raises(InputError, match="resnext50: 8 channels, twice width=4, cannot be divided among groups=32"):
        zoo.build("resnext50", width=4)
