"""YOLOv5's structure: three scales that are joined twice. Its size is compared with the published one elsewhere."""

import numpy as np
import onnx
import pytest

from rlflow import zoo
from rlflow.errors import InputError

SMALL = {"width": 2, "image": 64, "classes": 3}


def test_boxes_at_three_strides(run):
    """Each head has four coordinates, an objectness and the classes for each of three anchors."""
    model = zoo.build("yolo_v5", **SMALL)
    boxes = run(model, {"image": np.random.default_rng(0).standard_normal((1, 3, 64, 64), dtype=np.float32)})
    assert {name: values.shape for name, values in boxes.items()} == {
        "boxes_8": (1, 24, 8, 8),
        "boxes_16": (1, 24, 4, 4),
        "boxes_32": (1, 24, 2, 2),
    }


def test_every_convolution_but_the_heads_has_its_normalisation_and_silu():
    operators = [node.op_type for node in zoo.build("yolo_v5", **SMALL).graph.node]
    counts = {operator: operators.count(operator) for operator in set(operators)}
    assert counts == {
        "Conv": 60,
        "BatchNormalization": 57,
        "Sigmoid": 57,
        "Mul": 57,
        "Concat": 13,
        "Add": 7,
        "MaxPool": 3,
        "Resize": 2,
    }


def test_a_pixel_at_the_border_is_seen_at_every_scale(run):
    """What is coarse knows what is fine, and the other way round: a change in one corner reaches all three heads."""
    model = zoo.build("yolo_v5", **SMALL)
    image = np.random.default_rng(0).standard_normal((1, 3, 64, 64), dtype=np.float32)
    changed = image.copy()
    changed[..., 0, 0] += 5
    before, after = run(model, {"image": image}), run(model, {"image": changed})
    assert all(np.abs(before[name] - after[name])[..., 0, 0].max() > 1e-3 for name in before)


def test_upsampling_repeats_each_place(run):
    model = zoo.build("yolo_v5", **SMALL)
    resize = next(node for node in model.graph.node if node.op_type == "Resize")
    for name in (resize.input[0], resize.output[0]):
        model.graph.output.append(onnx.ValueInfoProto(name=name))
    values = run(model, {"image": np.random.default_rng(0).standard_normal((1, 3, 64, 64), dtype=np.float32)})
    coarse, fine = values[resize.input[0]], values[resize.output[0]]
    np.testing.assert_array_equal(fine, coarse.repeat(2, axis=2).repeat(2, axis=3))


def test_an_image_that_cannot_be_halved_five_times_is_refused():
    with pytest.raises(InputError, match="yolo_v5: image=100 is not a multiple of 32"):
        zoo.build("yolo_v5", image=100)
