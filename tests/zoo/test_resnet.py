"""The ResNets of the zoo against transformers' ResNetForImageClassification, at the published widths."""

from collections.abc import Mapping

import numpy as np
import pytest
import torch

from rlflow import zoo

STRUCTURES = {
    "resnet18": {"layer_type": "basic", "depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512]},
    "resnet50": {"layer_type": "bottleneck", "depths": [3, 4, 6, 3], "hidden_sizes": [256, 512, 1024, 2048]},
}
DEPTHS = {"resnet18": 18 * 3 + 8, "resnet50": 50 * 3 + 16}
"""Conv, BatchNormalization and Relu of each layer on the longest path, and an Add of each block."""
TERMS = 9 * 512
PARTS = {"gain": "weight", "shift": "bias", "mean": "running_mean", "variance": "running_var"}


def reference_name(name: str) -> str:
    """resnet18/stage_0/block_1/conv_0/gain -> resnet.encoder.stages.0.layers.1.layer.0.normalization.weight"""
    _, *place, part = name.split("/")
    if place == ["classifier"]:
        return f"classifier.1.{part}"
    if place == ["stem"]:
        path = "embedder.embedder"
    else:
        stage, block, layer = place
        path = f"encoder.stages.{stage[6:]}.layers.{block[6:]}.{layer.replace('conv_', 'layer.')}"
    return f"resnet.{path}.convolution.weight" if part == "weight" else f"resnet.{path}.normalization.{PARTS[part]}"


def reference(name: str, parameters: Mapping[str, np.ndarray], image: np.ndarray) -> np.ndarray:
    from transformers import ResNetConfig, ResNetForImageClassification  # seconds, which only the slow tests pay

    config = ResNetConfig(embedding_size=64, num_labels=1000, downsample_in_bottleneck=False, **STRUCTURES[name])
    model = ResNetForImageClassification(config).eval()
    state = {reference_name(ours): torch.tensor(values) for ours, values in parameters.items()}
    assert set(state) == {key for key in model.state_dict() if not key.endswith("num_batches_tracked")}
    model.load_state_dict(state, strict=False)
    with torch.no_grad():
        return model(torch.tensor(image)).logits.numpy()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("resnet18", 64),
        ("resnet18", 33),
        ("resnet50", 64),
        pytest.param("resnet18", 224, marks=pytest.mark.slow),
        pytest.param("resnet50", 224, marks=pytest.mark.slow),
    ],
)
def test_equals_transformers(name, size, run, parameters, assert_close):
    model = zoo.build(name, image=size, batch="batch")
    image = np.random.default_rng(0).standard_normal((2, 3, size, size), dtype=np.float32)
    expected = reference(name, parameters(model), image)
    assert expected.shape == (2, 1000)
    assert_close(run(model, {"image": image})["logits"], expected, depth=DEPTHS[name], terms=TERMS)
