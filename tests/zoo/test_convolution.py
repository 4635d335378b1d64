"""The parts of image models against torch's functions, part by part."""

import numpy as np
import onnx
import pytest
import torch
from torch.nn import functional

from rlflow.zoo.builder import GraphBuilder
from rlflow.zoo.convolution import convolution, fully_connected, normalised_convolution, pooled_classifier

X = np.random.default_rng(0).standard_normal((2, 4, 7, 6), dtype=np.float32)


def _model(part, *arguments, **settings) -> onnx.ModelProto:
    """The part alone, from x to y of a shape that is inferred."""
    b = GraphBuilder("part", seed=0, opset=17)
    y = part(b, "part", b.input("x", X.shape), *arguments, **settings)
    b.output("y", y, [None] * (2 if part is pooled_classifier else 4))
    return b.finish()


@pytest.mark.parametrize(
    ("settings", "padding"),
    [({}, (1, 0)), ({"stride": 2}, (1, 0)), ({"groups": 2}, (1, 0)), ({"padded": False}, 0), ({"bias": False}, (1, 0))],
)
def test_convolution_equals_torch(settings, padding, run, parameters, assert_close) -> None:
    model = _model(convolution, 4, 6, (3, 1), **settings)
    weights = {name: torch.from_numpy(value.copy()) for name, value in parameters(model).items()}
    assert ("part/bias" in weights) is settings.get("bias", True)
    wanted = functional.conv2d(
        torch.from_numpy(X),
        weights["part/weight"],
        weights.get("part/bias"),
        stride=settings.get("stride", 1),
        padding=padding,
        groups=settings.get("groups", 1),
    )
    assert_close(run(model, {"x": X})["y"], wanted.numpy(), depth=1, terms=12)


def test_normalisation_follows_a_convolution_without_a_bias(run, parameters, assert_close) -> None:
    model = _model(normalised_convolution, 4, 6, (1, 1), gain=0.5)
    weights = {name: torch.from_numpy(value.copy()) for name, value in parameters(model).items()}
    assert set(weights) == {f"part/{name}" for name in ("weight", "gain", "shift", "mean", "variance")}
    product = functional.conv2d(torch.from_numpy(X), weights["part/weight"])
    statistics = (weights[f"part/{name}"] for name in ("mean", "variance", "gain", "shift"))
    wanted = functional.batch_norm(product, *statistics)
    assert_close(run(model, {"x": X})["y"], wanted.numpy(), depth=2, terms=4)


def test_a_classifier_reads_the_mean_of_each_channel(run, parameters, assert_close) -> None:
    model = _model(pooled_classifier, 4, 3)
    weights = parameters(model)
    wanted = X.mean((2, 3)) @ weights["part/classifier/weight"].T + weights["part/classifier/bias"]
    assert_close(run(model, {"x": X})["y"], wanted, depth=2, terms=42)


def test_the_spread_of_weights_is_that_which_is_asked_for(parameters) -> None:
    b = GraphBuilder("part", seed=0, opset=17)
    x = b.input("x", (1, 100))
    b.output("y", fully_connected(b, "part", x, 100, 200, std=0.25), (1, 200))
    assert parameters(b.finish())["part/weight"].std() == pytest.approx(0.25, rel=0.05)
