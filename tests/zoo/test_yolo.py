"""YOLOv5's structure: three scales that are joined twice."""

import numpy as np

from rlflow import zoo

SMALL = {"width": 2, "image": 64, "classes": 3}


def test_a_pixel_at_the_border_is_seen_at_every_scale(run):
    """Boxes at three strides, each with four coordinates, an objectness and the classes for each of three anchors.
    What is coarse knows what is fine, and the other way round: a change in one corner reaches all three heads.
    """
    model = zoo.build("yolo_v5", **SMALL)
    image = np.random.default_rng(0).standard_normal((1, 3, 64, 64), dtype=np.float32)
    changed = image.copy()
    changed[..., 0, 0] += 5
    before, after = run(model, {"image": image}), run(model, {"image": changed})
    shapes = {f"boxes_{stride}": (1, 24, 64 // stride, 64 // stride) for stride in (8, 16, 32)}
    assert {name: values.shape for name, values in before.items()} == shapes
    assert all(np.abs(before[name] - after[name])[..., 0, 0].max() > 1e-3 for name in before)
