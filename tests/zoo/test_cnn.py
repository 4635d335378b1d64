"""The convolutional model against torch's functional operators."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from rlflow import zoo
from rlflow.errors import InputError

DEPTH = 12
TERMS = 9 * 16


def reference(parameters: dict[str, np.ndarray], image: np.ndarray, blocks: int) -> np.ndarray:
    weights = {name: torch.tensor(values) for name, values in parameters.items()}
    x = torch.tensor(image)
    for block in range(blocks):
        w = {part: weights[f"conv/block_{block}/{part}"] for part in "weight bias gain shift mean variance".split()}
        x = functional.conv2d(x, w["weight"], w["bias"], padding=1)
        x = functional.batch_norm(x, w["mean"], w["variance"], w["gain"], w["shift"], eps=1e-5)
        x = functional.max_pool2d(functional.relu(x), 2)
    x = functional.adaptive_avg_pool2d(x, 1).flatten(1)
    return functional.linear(x, weights["conv/classifier/weight"], weights["conv/classifier/bias"]).numpy()


@pytest.mark.parametrize(
    "settings", [{}, {"blocks": 3, "channels": 4, "image": 9, "batch": 2}, {"batch": "batch", "opset": 21}]
)
def test_equals_torch(settings, run, parameters, assert_close):
    model = zoo.build("conv", **settings)
    size = settings.get("image", 32)
    image = np.random.default_rng(0).standard_normal((2, 3, size, size), dtype=np.float32)
    image = image[:1] if settings.get("batch", 1) == 1 else image
    expected = reference(parameters(model), image, settings.get("blocks", 2))
    assert expected.shape == (len(image), 10)
    assert_close(run(model, {"image": image})["logits"], expected, depth=DEPTH, terms=TERMS)


def test_every_parameter_matters(run, parameters, reorder, assert_differs):
    model = zoo.build("conv", channels=4, image=8)
    image = np.random.default_rng(0).standard_normal((1, 3, 8, 8), dtype=np.float32)
    expected = run(model, {"image": image})["logits"]
    names = parameters(model)
    assert len(names) == 2 * 6 + 2
    for name in names:
        changed = run(reorder(model, name), {"image": image})["logits"]
        assert_differs(changed, expected, depth=DEPTH, terms=TERMS)


def test_variances_are_positive_and_drawn(parameters):
    for name, values in parameters(zoo.build("conv")).items():
        assert values.std() > 0
        assert not name.endswith("variance") or values.min() >= 0.5


def test_an_image_that_vanishes_is_refused():
    with pytest.raises(InputError, match="4 blocks halve an image of 8 pixels to nothing"):
        zoo.build("conv", image=8, blocks=4)
