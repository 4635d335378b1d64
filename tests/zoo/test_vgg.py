"""VGG-19 against torch modules; transformers has none."""

from collections import OrderedDict

import numpy as np
import pytest
from support.twins import twin_output
from torch import nn

from rlflow import zoo
from rlflow.errors import InputError

DEPTH = 2 * 19 + 6
"""Conv or Gemm and Relu of 19 layers, poolings and a Flatten."""


def vgg(width: int, hidden: int, pixels: int, classes: int) -> nn.Sequential:
    """Table 1 of Simonyan and Zisserman (2015), column E, in units of its 64 channels."""
    layers: OrderedDict[str, nn.Module] = OrderedDict()
    inputs = 3
    for stage, widths in enumerate(((1, 1), (2, 2), (4, 4, 4, 4), (8, 8, 8, 8), (8, 8, 8, 8))):
        names: OrderedDict[str, nn.Module] = OrderedDict()
        for index, factor in enumerate(widths):
            names[f"conv_{index}"] = nn.Conv2d(inputs, factor * width, 3, padding=1)
            names[f"relu_{index}"] = nn.ReLU()
            inputs = factor * width
        layers[f"stage_{stage}"] = nn.Sequential(names)
        layers[f"pool_{stage}"] = nn.MaxPool2d(2)
    layers["flat"] = nn.Flatten()
    head = OrderedDict(
        layer_0=nn.Linear(inputs * pixels, hidden),
        relu_0=nn.ReLU(),
        layer_1=nn.Linear(hidden, hidden),
        relu_1=nn.ReLU(),
        layer_2=nn.Linear(hidden, classes),
    )
    layers["classifier"] = nn.Sequential(head)
    return nn.Sequential(layers)


@pytest.mark.parametrize(("size", "left"), [(64, 2), (40, 1)])
def test_equals_torch(size, left, run, parameters, assert_close):
    """At the second size poolings leave pixels out."""
    model = zoo.build("vgg19", width=8, hidden=48, image=size, batch="batch", classes=10)
    image = np.random.default_rng(0).standard_normal((2, 3, size, size), dtype=np.float32)
    expected = twin_output(vgg(8, 48, left * left, 10), parameters(model), image)
    assert_close(run(model, {"image": image})["logits"], expected, depth=DEPTH, terms=9 * 64)


def test_an_image_that_vanishes_is_refused():
    with pytest.raises(InputError, match="the poolings leave nothing of an image of 31 pixels; give 32 or more"):
        zoo.build("vgg19", image=31)
