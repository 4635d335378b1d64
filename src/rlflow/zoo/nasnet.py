"""NASNet-A for ImageNet (Zoph et al. 2018, Figure 4 and appendix A), which TASO and Tensat optimise as NasNet-A.

A cell reads the two cells before it, `before` and `current`, and makes five sums of two operations each. Every other
thing is bookkeeping: the two cells may differ in size and channels, so they are first brought to the same (`_fitted`,
`_squeezed`). Normal cells keep the size; reduction cells halve it.
"""

from dataclasses import dataclass

import numpy as np
from onnx import ModelProto

from rlflow.errors import InputError
from rlflow.zoo.builder import Dimension, GraphBuilder
from rlflow.zoo.convolution import batch_normalisation, convolution, normalised_convolution, pooled_classifier

_STEM = 32
_LEAST_IMAGE = 35
_EPSILON = 1e-3
# A separable convolution has two convolutions without a Relu between them, of which He's weights double the variance,
# and a cell adds such branches: at this gain of each normalisation, fourteen cells keep it in bounds.
_GAIN = 0.5


@dataclass(frozen=True, slots=True)
class _Features:
    """The result of a cell: a tensor (batch, channels, size, size)."""

    tensor: str
    channels: int
    size: int


def nasnet_a(
    *,
    width: int = 44,
    cells: int = 4,
    image: int = 224,
    batch: Dimension = 1,
    classes: int = 1000,
    seed: int = 0,
    opset: int = 17,
) -> ModelProto:
    """NASNet-A: cells of separable convolutions and poolings, found by search, each reading the two cells before it.

    Input image (batch, 3, image, image), batch a number or a symbol; output logits (batch, classes). Two reduction
    cells, then three times `cells` normal cells with a reduction cell between, `width` filters in the first of them and
    twice as many after each reduction. As published for mobile phones (4 @ 1056, which is 24 x 44), 911 nodes and
    5,289,978 parameters. Raises InputError if the width cannot be halved twice or the layers leave nothing of the
    image.
    """
    if width % 4:
        raise InputError(
            f"nasnet_a: width={width} is not a multiple of 4; choose one, since the first cells have a quarter of it."
        )
    if image < _LEAST_IMAGE:
        raise InputError(
            f"nasnet_a: the layers leave nothing of an image of {image} pixels; give {_LEAST_IMAGE} or more."
        )

    b = GraphBuilder("nasnet_a", seed=seed, opset=opset)
    x = b.input("image", (batch, 3, image, image))
    x = normalised_convolution(b, "nasnet_a/stem", x, 3, _STEM, (3, 3), stride=2, padded=False, epsilon=_EPSILON)

    before = current = _Features(x, _STEM, (image - 1) // 2)
    for index, filters in enumerate((width // 4, width // 2)):
        before, current = current, _reduction_cell(b, f"nasnet_a/entry/cell_{index}", before, current, filters)

    for stage in range(3):
        filters = width << stage
        if stage > 0:
            before, current = current, _reduction_cell(b, f"nasnet_a/stage_{stage}/reduce", before, current, filters)
        for index in range(cells):
            scope = f"nasnet_a/stage_{stage}/cell_{index}"
            before, current = current, _normal_cell(b, scope, before, current, filters)

    x = b.node("Relu", current.tensor, scope="nasnet_a")
    b.output("logits", pooled_classifier(b, "nasnet_a", x, current.channels, classes), (batch, classes))
    return b.finish()


def _normal_cell(b: GraphBuilder, scope: str, before: _Features, current: _Features, filters: int) -> _Features:
    """Five sums of two operations and the cell before, concatenated: 6 `filters` channels of the same size."""
    p = _fitted(b, f"{scope}/before", before, current.size, filters)
    h = _squeezed(b, f"{scope}/current", current.tensor, current.channels, filters)

    def separable(name: str, x: str, kernel: int) -> str:
        return _separable(b, f"{scope}/{name}", x, filters, filters, kernel)

    sums = (
        _add(b, scope, separable("sum_0/left", h, 5), separable("sum_0/right", p, 3)),
        _add(b, scope, separable("sum_1/left", p, 5), separable("sum_1/right", p, 3)),
        _add(b, scope, _pool(b, "AveragePool", scope, h), p),
        _add(b, scope, _pool(b, "AveragePool", scope, p), _pool(b, "AveragePool", scope, p)),
        _add(b, scope, separable("sum_4/left", h, 3), h),
    )
    return _Features(b.node("Concat", p, *sums, scope=scope, axis=1), 6 * filters, current.size)


def _reduction_cell(b: GraphBuilder, scope: str, before: _Features, current: _Features, filters: int) -> _Features:
    """Five sums of two operations; the four that no other reads, concatenated: 4 `filters` channels, half the size."""
    p, channels = before.tensor, before.channels
    if before is not current:  # the first cell reads the stem twice, as it is
        p, channels = _fitted(b, f"{scope}/before", before, current.size, filters), filters
    h = _squeezed(b, f"{scope}/current", current.tensor, current.channels, filters)

    def separable(name: str, x: str, inputs: int, kernel: int) -> str:
        return _separable(b, f"{scope}/{name}", x, inputs, filters, kernel, stride=2)

    first = _add(b, scope, separable("sum_0/left", h, filters, 5), separable("sum_0/right", p, channels, 7))
    second = _add(b, scope, _pool(b, "MaxPool", scope, h, stride=2), separable("sum_1/right", p, channels, 7))
    third = _add(b, scope, _pool(b, "AveragePool", scope, h, stride=2), separable("sum_2/right", p, channels, 5))
    fourth = _add(b, scope, second, _pool(b, "AveragePool", scope, first))
    narrowed = _separable(b, f"{scope}/sum_4/left", first, filters, filters, 3)
    fifth = _add(b, scope, narrowed, _pool(b, "MaxPool", scope, h, stride=2))
    joined = b.node("Concat", second, third, fourth, fifth, scope=scope, axis=1)
    return _Features(joined, 4 * filters, _halved(current.size))


def _fitted(b: GraphBuilder, scope: str, x: _Features, size: int, filters: int) -> str:
    """The cell before last, brought to the size and channels of this one."""
    if x.size != size:
        return _fitted_halves(b, scope, x, filters)
    return x.tensor if x.channels == filters else _squeezed(b, scope, x.tensor, x.channels, filters)


def _fitted_halves(b: GraphBuilder, scope: str, x: _Features, filters: int) -> str:
    """Halve the size: every second pixel, and those below and to the right of them, give half the channels each."""
    y = b.node("Relu", x.tensor, scope=scope)
    pads = b.constant("below_and_right", np.array([0, 0, 0, 0, 0, 0, 1, 1]))
    start, end = b.constant("second_pixel", np.array([1, 1])), b.constant("last_pixel", np.array([2**31 - 1] * 2))
    axes = b.constant("image_axes", np.array([2, 3]))
    shifted = b.node("Slice", b.node("Pad", y, pads, scope=scope), start, end, axes, scope=scope)
    halves = []
    for index, pixels in enumerate((y, shifted)):
        pixels = b.node("AveragePool", pixels, scope=scope, kernel_shape=[1, 1], strides=[2, 2])
        inner = f"{scope}/half_{index}"
        halves.append(convolution(b, inner, pixels, x.channels, filters // 2, (1, 1), bias=False))
    return batch_normalisation(b, scope, b.node("Concat", *halves, scope=scope, axis=1), filters, epsilon=_EPSILON)


def _squeezed(b: GraphBuilder, scope: str, x: str, inputs: int, outputs: int) -> str:
    """Relu, then a normalised 1x1 convolution."""
    x = b.node("Relu", x, scope=scope)
    return normalised_convolution(b, scope, x, inputs, outputs, (1, 1), epsilon=_EPSILON)


def _separable(b: GraphBuilder, scope: str, x: str, inputs: int, outputs: int, kernel: int, *, stride: int = 1) -> str:
    """Two times Relu, depthwise Conv, pointwise Conv and BatchNormalization; the first depthwise one has the stride."""
    for index, (fan_in, step) in enumerate(((inputs, stride), (outputs, 1))):
        inner = f"{scope}/layer_{index}"
        x = b.node("Relu", x, scope=inner)
        x = convolution(
            b, f"{inner}/depth", x, fan_in, fan_in, (kernel, kernel), stride=step, groups=fan_in, bias=False
        )
        x = normalised_convolution(b, f"{inner}/point", x, fan_in, outputs, (1, 1), epsilon=_EPSILON, gain=_GAIN)
    return x


def _pool(b: GraphBuilder, operator: str, scope: str, x: str, *, stride: int = 1) -> str:
    """A 3x3 pooling; pixels outside of the image do not count."""
    return b.node(operator, x, scope=scope, kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[stride, stride])


def _add(b: GraphBuilder, scope: str, left: str, right: str) -> str:
    return b.node("Add", left, right, scope=scope)


def _halved(size: int) -> int:
    return (size + 1) // 2
