"""MobileNetV3-Small against its layers in torch, which have the published sizes (test_published_sizes)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch.nn import functional

from rlflow import zoo

DEPTH = 156
TERMS = 1024
STRIDES = (2, 2, 1, 2, 1, 1, 1, 1, 2, 1, 1)
RELU_BLOCKS = 3


class Reference:
    """The network by torch's own functions, from the weights of a model."""

    def __init__(self, parameters: Mapping[str, np.ndarray]) -> None:
        self.values = {name.removeprefix("mobilenet_v3/"): torch.tensor(array) for name, array in parameters.items()}

    def normalised(self, scope: str, x: torch.Tensor, stride: int = 1) -> torch.Tensor:
        weight = self.values[f"{scope}/weight"]
        groups = x.shape[1] // weight.shape[1]
        x = functional.conv2d(x, weight, stride=stride, padding=weight.shape[-1] // 2, groups=groups)
        mean, variance, gain, shift = (self.values[f"{scope}/{part}"] for part in ("mean", "variance", "gain", "shift"))
        return functional.batch_norm(x, mean, variance, gain, shift, eps=1e-3)

    def excited(self, scope: str, x: torch.Tensor) -> torch.Tensor:
        weights = x.mean((2, 3), keepdim=True)
        for part, activation in (("squeeze", functional.relu), ("expand", functional.hardsigmoid)):
            weight, bias = self.values[f"{scope}/{part}/weight"], self.values[f"{scope}/{part}/bias"]
            weights = activation(functional.conv2d(weights, weight, bias))
        return weights * x

    def block(self, number: int, x: torch.Tensor) -> torch.Tensor:
        scope, y = f"block_{number}", x
        activation = functional.relu if number < RELU_BLOCKS else functional.hardswish
        if f"{scope}/widen/weight" in self.values:
            y = activation(self.normalised(f"{scope}/widen", y))
        y = activation(self.normalised(f"{scope}/filter", y, STRIDES[number]))
        if f"{scope}/excite/squeeze/weight" in self.values:
            y = self.excited(f"{scope}/excite", y)
        y = self.normalised(f"{scope}/narrow", y)
        return x + y if x.shape == y.shape else y

    def logits(self, image: np.ndarray) -> np.ndarray:
        x = functional.hardswish(self.normalised("stem", torch.tensor(image), 2))
        for number in range(len(STRIDES)):
            x = self.block(number, x)
        x = functional.hardswish(self.normalised("last", x)).mean((2, 3))
        x = functional.hardswish(functional.linear(x, self.values["hidden/weight"], self.values["hidden/bias"]))
        return functional.linear(x, self.values["classifier/weight"], self.values["classifier/bias"]).numpy()


@pytest.mark.parametrize("size", [64, 45])
def test_equals_torch(size, run, parameters, assert_close):
    model = zoo.build("mobilenet_v3", width=4, image=size, batch="batch")
    image = np.random.default_rng(0).standard_normal((2, 3, size, size), dtype=np.float32)
    expected = Reference(parameters(model)).logits(image)
    assert expected.shape == (2, 1000)
    assert_close(run(model, {"image": image})["logits"], expected, depth=DEPTH, terms=TERMS)


def test_operators_are_those_of_the_publication():
    """Nine of eleven blocks squeeze; hard swish is on the stem, in eight blocks twice, and on the last two layers."""
    model = zoo.build("mobilenet_v3", width=1, image=32, classes=10)
    operators = [node.op_type for node in model.graph.node]
    assert operators.count("HardSigmoid") == 9
    assert operators.count("HardSwish") == 1 + 8 * 2 + 2
    assert operators.count("Relu") == 2 * 3 - 1 + 9, "the first block does not widen; each squeeze has one"
