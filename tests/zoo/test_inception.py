"""InceptionV3 against torch modules with the published numbers of channels."""

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import nn

from rlflow import zoo
from rlflow.errors import InputError

DEPTH = 47 * 3 + 11 + 4
"""Conv, BatchNormalization and Relu of the longest path, a Concat of each module, poolings."""
TERMS = 9 * 448
PARTS = {"weight": "0.weight", "gain": "1.weight", "shift": "1.bias", "mean": "1.running_mean"}
PARTS["variance"] = "1.running_var"


def unit(inputs: int, outputs: int, kernel: int | tuple[int, int] = 1, stride: int = 1, padding=0) -> nn.Sequential:
    conv = nn.Conv2d(inputs, outputs, kernel, stride, padding, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(outputs, eps=1e-3), nn.ReLU())


class Towers(nn.Module):
    """Figures 5 to 7 and 10 of Szegedy et al. (2016) are all of this kind."""

    def __init__(self, *towers: list[nn.Module]) -> None:
        super().__init__()
        for index, tower in enumerate(towers):
            self.add_module(f"tower_{index}", nn.Sequential(*tower))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([tower(x) for tower in self.children()], 1)


def blur() -> nn.Module:
    return nn.AvgPool2d(3, 1, padding=1)


def mixed_5(inputs: int, pooled: int) -> Towers:
    return Towers(
        [unit(inputs, 64)],
        [unit(inputs, 48), unit(48, 64, 5, padding=2)],
        [unit(inputs, 64), unit(64, 96, 3, padding=1), unit(96, 96, 3, padding=1)],
        [blur(), unit(inputs, pooled)],
    )


def mixed_6(n: int) -> Towers:
    row, column = {"kernel": (1, 7), "padding": (0, 3)}, {"kernel": (7, 1), "padding": (3, 0)}
    return Towers(
        [unit(768, 192)],
        [unit(768, n), unit(n, n, **row), unit(n, 192, **column)],
        [unit(768, n), unit(n, n, **column), unit(n, n, **row), unit(n, n, **column), unit(n, 192, **row)],
        [blur(), unit(768, 192)],
    )


def mixed_7(inputs: int) -> Towers:
    def cross() -> Towers:
        return Towers([unit(384, 384, (1, 3), padding=(0, 1))], [unit(384, 384, (3, 1), padding=(1, 0))])

    return Towers(
        [unit(inputs, 320)],
        [unit(inputs, 384), cross()],
        [unit(inputs, 448), unit(448, 384, 3, padding=1), cross()],
        [blur(), unit(inputs, 192)],
    )


def inception() -> nn.Sequential:
    """Table 1 of Szegedy et al. (2016), with the widths of the authors' release."""
    layers = {
        "conv_1a": unit(3, 32, 3, 2),
        "conv_2a": unit(32, 32, 3),
        "conv_2b": unit(32, 64, 3, padding=1),
        "pool_3a": nn.MaxPool2d(3, 2),
        "conv_3b": unit(64, 80),
        "conv_4a": unit(80, 192, 3),
        "pool_5a": nn.MaxPool2d(3, 2),
        "mixed_5b": mixed_5(192, 32),
        "mixed_5c": mixed_5(256, 64),
        "mixed_5d": mixed_5(288, 64),
        "mixed_6a": Towers(
            [unit(288, 384, 3, 2)],
            [unit(288, 64), unit(64, 96, 3, padding=1), unit(96, 96, 3, 2)],
            [nn.MaxPool2d(3, 2)],
        ),
        "mixed_6b": mixed_6(128),
        "mixed_6c": mixed_6(160),
        "mixed_6d": mixed_6(160),
        "mixed_6e": mixed_6(192),
        "mixed_7a": Towers(
            [unit(768, 192), unit(192, 320, 3, 2)],
            [
                unit(768, 192),
                unit(192, 192, (1, 7), padding=(0, 3)),
                unit(192, 192, (7, 1), padding=(3, 0)),
                unit(192, 192, 3, 2),
            ],
            [nn.MaxPool2d(3, 2)],
        ),
        "mixed_7b": mixed_7(1280),
        "mixed_7c": mixed_7(2048),
        "pool": nn.AdaptiveAvgPool2d(1),
        "flatten": nn.Flatten(),
        "classifier": nn.Linear(2048, 1000),
    }
    model = nn.Sequential()
    for name, layer in layers.items():
        model.add_module(name, layer)
    return model


def reference_name(name: str) -> str:
    """inception_v3/mixed_5b/tower_1/step_0/gain -> mixed_5b.tower_1.0.1.weight"""
    _, *place, part = name.split("/")
    if place != ["classifier"]:
        part = PARTS[part]
    return ".".join([*place, part]).replace("step_", "")


def reference(parameters: Mapping[str, np.ndarray], image: np.ndarray) -> np.ndarray:
    model = inception().eval()
    state = {reference_name(ours): torch.tensor(values) for ours, values in parameters.items()}
    assert set(state) == {key for key in model.state_dict() if not key.endswith("num_batches_tracked")}
    model.load_state_dict(state, strict=False)
    with torch.no_grad():
        return model(torch.tensor(image)).numpy()


@pytest.mark.parametrize("size", [75, 96, pytest.param(299, marks=pytest.mark.slow)])
def test_equals_torch(size, run, parameters, assert_close):
    model = zoo.build("inception_v3", image=size, batch="batch")
    image = np.random.default_rng(0).standard_normal((2, 3, size, size), dtype=np.float32)
    expected = reference(parameters(model), image)
    assert expected.shape == (2, 1000)
    assert_close(run(model, {"image": image})["logits"], expected, depth=DEPTH, terms=TERMS)


def test_an_image_that_vanishes_is_refused():
    with pytest.raises(InputError, match="the layers leave nothing of an image of 74 pixels; give 75 or more"):
        zoo.build("inception_v3", image=74)
