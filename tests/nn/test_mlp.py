"""A multi-layer perceptron has the sizes asked for."""

import torch

from rlflow.nn.mlp import mlp


def test_mlp_has_the_sizes_asked_for() -> None:
    assert [layer.out_features for layer in mlp([3, 5, 7]) if isinstance(layer, torch.nn.Linear)] == [5, 7]
    assert mlp([3, 5, 7])(torch.zeros(2, 4, 3)).shape == (2, 4, 7)
