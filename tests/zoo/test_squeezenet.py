"""SqueezeNet 1.1 against torch modules with the published numbers of channels."""

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import nn

from rlflow import zoo
from rlflow.errors import InputError

DEPTH = 3 * 18 + 4
"""Conv and Relu of 18 layers, 8 Concat, poolings."""
TERMS = 512


class Fire(nn.Module):
    def __init__(self, inputs: int, squeeze: int, expand: int) -> None:
        super().__init__()
        self.squeeze = nn.Conv2d(inputs, squeeze, 1)
        self.expand_1x1 = nn.Conv2d(squeeze, expand, 1)
        self.expand_3x3 = nn.Conv2d(squeeze, expand, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.squeeze(x).relu()
        return torch.cat([self.expand_1x1(x).relu(), self.expand_3x3(x).relu()], 1)


def squeezenet() -> nn.Sequential:
    """Table 1 of Iandola et al. (2016), changed as their release of version 1.1 says."""
    return nn.Sequential(
        nn.Conv2d(3, 64, 3, stride=2),
        nn.ReLU(),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        Fire(64, 16, 64),
        Fire(128, 16, 64),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        Fire(128, 32, 128),
        Fire(256, 32, 128),
        nn.MaxPool2d(3, 2, ceil_mode=True),
        Fire(256, 48, 192),
        Fire(384, 48, 192),
        Fire(384, 64, 256),
        Fire(512, 64, 256),
        nn.Conv2d(512, 1000, 1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


PLACES = {
    "stem": 0,
    "stage_0/fire_0": 3,
    "stage_0/fire_1": 4,
    "stage_1/fire_0": 6,
    "stage_1/fire_1": 7,
    "stage_2/fire_0": 9,
    "stage_2/fire_1": 10,
    "stage_2/fire_2": 11,
    "stage_2/fire_3": 12,
    "classifier": 13,
}


def reference(parameters: Mapping[str, np.ndarray], image: np.ndarray) -> np.ndarray:
    state = {}
    for name, values in parameters.items():
        name = name.removeprefix("squeezenet1_1/")
        (place,) = (place for place in PLACES if name.startswith(place + "/"))
        state[f"{PLACES[place]}{name.removeprefix(place).replace('/', '.')}"] = torch.tensor(values)
    model = squeezenet()
    model.load_state_dict(state)
    with torch.no_grad():
        return model(torch.tensor(image)).numpy()


@pytest.mark.parametrize("size", [21, 24, 64, pytest.param(224, marks=pytest.mark.slow)])
def test_equals_torch(size, run, parameters, assert_close):
    """Among the sizes are those at which the last windows of a pooling hang over the edge."""
    model = zoo.build("squeezenet1_1", image=size, batch="batch")
    image = np.random.default_rng(0).standard_normal((2, 3, size, size), dtype=np.float32)
    expected = reference(parameters(model), image)
    assert expected.shape == (2, 1000)
    assert_close(run(model, {"image": image})["logits"], expected, depth=DEPTH, terms=TERMS)


def test_an_image_that_vanishes_is_refused():
    with pytest.raises(InputError, match="the poolings leave nothing of an image of 20 pixels; give 21 or more"):
        zoo.build("squeezenet1_1", image=20)
