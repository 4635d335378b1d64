"""MobileNetV2 against transformers' MobileNetV2ForImageClassification, at the published widths."""

from collections.abc import Mapping

import numpy as np
import onnx
import pytest
import torch

from rlflow import zoo

DEPTH = 53 * 3 + 10
"""Conv, BatchNormalization and Clip of each layer, and an Add of ten blocks."""
TERMS = 1280
PARTS = {
    "weight": "convolution.weight",
    "gain": "normalization.weight",
    "shift": "normalization.bias",
    "mean": "normalization.running_mean",
    "variance": "normalization.running_var",
}
LAYERS = {"widen": "expand_1x1", "filter": "conv_3x3", "narrow": "reduce_1x1"}
BLOCKS = (1, 2, 3, 4, 3, 3, 1)


def reference_name(name: str) -> str:
    """mobilenet_v2/stage_1/block_0/widen/gain -> mobilenet_v2.layer.0.expand_1x1.normalization.weight"""
    _, *place, part = name.split("/")
    if place == ["classifier"]:
        return f"classifier.{part}"
    if place == ["stem"]:
        path = "conv_stem.first_conv"
    elif place == ["last"]:
        path = "conv_1x1"
    else:
        stage, block, layer = place
        index = sum(BLOCKS[: int(stage[6:])]) + int(block[6:])
        path = f"{'conv_stem' if index == 0 else f'layer.{index - 1}'}.{LAYERS[layer]}"
    return f"mobilenet_v2.{path}.{PARTS[part]}"


def reference(parameters: Mapping[str, np.ndarray], image: np.ndarray) -> np.ndarray:
    from transformers import MobileNetV2Config, MobileNetV2ForImageClassification  # seconds, for the slow tests alone

    config = MobileNetV2Config(num_labels=1000, tf_padding=False, layer_norm_eps=1e-5)
    model = MobileNetV2ForImageClassification(config).eval()
    state = {reference_name(ours): torch.tensor(values) for ours, values in parameters.items()}
    assert set(state) == {key for key in model.state_dict() if not key.endswith("num_batches_tracked")}
    model.load_state_dict(state, strict=False)
    with torch.no_grad():
        return model(torch.tensor(image)).logits.numpy()


@pytest.mark.slow
@pytest.mark.parametrize("size", [64, 45])
def test_equals_transformers(size, run, parameters, assert_close):
    model = zoo.build("mobilenet_v2", image=size, batch="batch")
    image = np.random.default_rng(0).standard_normal((2, 3, size, size), dtype=np.float32)
    expected = reference(parameters(model), image)
    assert expected.shape == (2, 1000)
    assert_close(run(model, {"image": image})["logits"], expected, depth=DEPTH, terms=TERMS)


def test_each_channel_is_filtered_by_itself():
    """One group a channel in the seventeen 3x3 convolutions of the blocks, and nowhere else."""
    model = zoo.build("mobilenet_v2", width=1, image=32, classes=10)
    groups = {node.name: {a.name: a.i for a in node.attribute}.get("group", 1) for node in model.graph.node}
    widths = {tensor.name: tensor.dims[0] for tensor in model.graph.initializer if tensor.dims}
    grouped = {name: found for name, found in groups.items() if found > 1}
    assert len(grouped) == 17
    assert grouped == {name: widths[name.replace("/Conv", "/weight")] for name in grouped if "/filter/" in name}


def test_activations_are_cut_at_six(run):
    """Both ends of Clip are met: with an image ten times as bright, far more values stand at the upper one."""
    model = zoo.build("mobilenet_v2", width=2, image=32, classes=10)
    clips = [node.output[0] for node in model.graph.node if node.op_type == "Clip"]
    assert len(clips) == 35
    first = clips[0]
    model.graph.output.append(onnx.ValueInfoProto(name=first))
    image = np.random.default_rng(0).standard_normal((1, 3, 32, 32), dtype=np.float32)
    plain, bright = (run(model, {"image": factor * image})[first] for factor in (1, 10))
    assert (plain.min(), bright.min(), bright.max()) == (0, 0, 6)
    assert (plain == 6).mean() < 0.01 < 0.1 < (bright == 6).mean()
