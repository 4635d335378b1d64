"""The multi-layer perceptron against numpy."""

import numpy as np
import pytest

from rlflow import zoo


@pytest.mark.parametrize("settings", [{}, {"layers": 1}, {"batch": "batch", "layers": 5, "hidden": 7}])
def test_equals_numpy(settings, run, parameters, assert_close):
    model = zoo.build("mlp", **settings)
    weights = parameters(model)
    x = np.random.default_rng(0).standard_normal((8, 32), dtype=np.float32)
    expected = x.astype(np.float64)
    layers = settings.get("layers", 3)
    for layer in range(layers):
        expected = expected @ weights[f"mlp/layer_{layer}/weight"] + weights[f"mlp/layer_{layer}/bias"]
        if layer < layers - 1:
            expected = np.maximum(expected, 0)
    assert len(weights) == 2 * layers
    assert_close(run(model, {"x": x})["y"], expected.astype(np.float32), depth=3 * layers, terms=64)
