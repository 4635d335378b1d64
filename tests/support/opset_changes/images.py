"""Inputs of operators on images: filters, windows, scales and places to look at."""

from math import prod

import numpy as np

from support.opset_changes.drawing import Draw, Value, integers


def _kernel(d: Draw) -> list[int]:
    return list(d.attributes.get("kernel_shape") or d.counts(1, 3, d.rank - 2))


def convolution(d: Draw) -> list[Value]:
    groups, each, filters = d.attributes.get("group", 1), d.count(1, 2), d.count(1, 2)
    d.shape = (d.shape[0], groups * each, *d.shape[2:])
    weight = d.tensor(1, (groups * filters, each, *_kernel(d)))
    return [d.tensor(0, d.shape), weight, d.optional(2, (groups * filters,))]


def transposed_convolution(d: Draw) -> list[Value]:
    groups, each, filters = d.attributes.get("group", 1), d.count(1, 2), d.count(1, 2)
    d.shape = (d.shape[0], groups * each, *d.shape[2:])
    weight = d.tensor(1, (groups * each, filters, *_kernel(d)))
    return [d.tensor(0, d.shape), weight, d.optional(2, (groups * filters,))]


def deformed_convolution(d: Draw) -> list[Value]:
    n, _, h, w = d.shape
    d.attributes = {"kernel_shape": [2, 2], "pads": [0, 0, 0, 0]} | ({"offset_group": 1} if d.chance() else {})
    weight = d.tensor(1, (2, d.shape[1], 2, 2))
    offset, mask = d.tensor(2, (n, 8, h - 1, w - 1)), d.optional(4, (n, 4, h - 1, w - 1))
    return [d.tensor(0, d.shape), weight, offset, d.optional(3, (2,)), mask]


def a_number_a_channel(d: Draw) -> list[Value]:
    """Batch, instance and group normalisation."""
    channels = d.shape[1] if d.rank > 1 else 1
    count = len(d.schema.inputs)
    sizes = [channels] * count
    if d.schema.name == "GroupNormalization" and d.schema.since_version < 21:
        sizes = [d.attributes["num_groups"]] * count
    others = [d.tensor(place, (sizes[place],)) for place in range(1, count)]
    if d.schema.name == "BatchNormalization":
        others[3] = np.abs(others[3])
    return [d.tensor(0, d.shape), *others]


def unpooled(d: Draw) -> list[Value]:
    d.attributes |= {"kernel_shape": [2] * (d.rank - 2), "strides": [2] * (d.rank - 2)}
    d.attributes.pop("pads", None)
    d.shape = (1, 1, *d.shape[2:])
    size = prod(d.shape)
    indices = d.numbers.permutation(size * 2 ** (d.rank - 2))[:size].reshape(d.shape)
    larger = integers(1, 1, *(2 * s + 1 for s in d.shape[2:]))
    return [d.tensor(0, d.shape), indices.astype(np.int64), larger if d.chance(0.3) else None]


def regions(d: Draw) -> list[Value]:
    """A region is two corners of an image, with the image's number in front for MaxRoiPool."""
    number = 3
    corners = np.sort(d.numbers.integers(0, 7, (number, 2, 2)), axis=1).reshape(number, 4)
    if d.schema.name == "MaxRoiPool":
        return [d.tensor(0, d.shape), np.insert(corners, 0, 0, axis=1).astype(d.type_of(1))]
    inside = corners + (d.numbers.random((number, 4)) if d.mood != "halves" else 0.5)
    return [d.tensor(0, d.shape), inside.astype(d.type_of(1)), d.indices((number,), d.shape[0], low=0)]


def scaled(d: Draw) -> list[Value]:
    """Upsample and Resize."""
    scales = np.array([1, 1, *(d.one_of((0.5, 0.6, 1, 1.5, 2, 3)) for _ in d.shape[2:])][: d.rank], np.float32)
    if d.chance(0.2):
        scales = np.array([d.one_of((0.5, 1, 1.5, 2)) for _ in d.shape], np.float32)
    if d.schema.name == "Upsample":
        scales = np.maximum(scales, np.float32(1))
    if "axes" in d.attributes:
        scales = scales[d.attributes["axes"]] if d.attributes["axes"] else scales[:0]
    if d.schema.since_version < 11:
        return [d.tensor(0, d.shape), scales][: len(d.schema.inputs)]
    data = d.tensor(0, d.shape)
    regions = np.array([0.1] * len(scales) + [0.9] * len(scales), d.type_of(1))
    wants = d.attributes.get("coordinate_transformation_mode") == "tf_crop_and_resize"
    optional = d.schema.since_version >= 13
    roi = regions if wants or (d.chance(0.2)) else None if optional and d.chance() else regions[:0]
    if d.chance():
        return [data, roi, scales]
    return [data, roi, None if optional and d.chance() else scales[:0], integers(*d.counts(1, 6, len(scales)))]


def sampled(d: Draw) -> list[Value]:
    d.shape = (d.count(1, 2), d.count(1, 2), *d.counts(2, 4, 2 if d.schema.since_version < 20 else d.one_of((2, 3))))
    places = d.numbers.uniform(-1.3, 1.3, (d.shape[0], *d.counts(1, 4, d.rank - 2), d.rank - 2))
    if d.mood == "halves":
        places = np.round(places * 2) / 2
    return [d.tensor(0, d.shape), places.astype(d.type_of(1))]
