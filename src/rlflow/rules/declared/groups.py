"""Convolutions in groups and of single points: groups apart and together, strides as slices, points as products.

An example is `grouped-points-to-products`: filters of one point are matrices, one for each group. Filters and biases
are constant, so that what is done to them is done once.
"""

from __future__ import annotations

from typing import Annotated

from rlflow.rules.dsl import CONSTANT, Rewrite, Shape, Tensor, Value, false_control, ints, rules
from rlflow.rules.dsl import split as parts_of
from rlflow.rules.dsl.operators import Add, Concat, Conv, MatMul, Mul, Reshape, Slice
from rlflow.rules.dsl.vocabulary import (
    CHANNELS,
    FILTERS,
    LAST,
    WHOLE,
    Bias,
    Dilations,
    GroupedWindow,
    Groups,
    Image,
    Kernel,
    Strides,
)
from rlflow.rules.expression import TO_THE_END

FAMILY = "convolution"

Points = Annotated[Tensor, Shape("m k 1 1"), CONSTANT]


def _halves(x: Tensor, axis: int, size: Value) -> list[Tensor]:
    return parts_of(x, axis, size / 2, size / 2)


@rules({"groups-apart": False, "groups-apart-with-bias": True})
def groups_apart(bias: bool, x: Image, f: Kernel, b: Bias, window: GroupedWindow) -> Rewrite:
    """A convolution in groups, as one of the first half of the channels and one of the second."""
    filters, half = f.dim(0), window["group"] / 2
    operands = [_halves(x, CHANNELS, x.dim(1)), _halves(f, FILTERS, filters)]
    if bias:
        operands.append(_halves(b, LAST, filters))

    convolutions = [Conv(*parts, **{**window, "group": half}) for parts in zip(*operands, strict=True)]
    return Rewrite(
        Conv(x, f, *([b] if bias else []), **window),
        Concat(*convolutions, axis=CHANNELS),
        where=[2 * half == window["group"]],
    )


@false_control("groups-change-places", of="groups-apart")
def groups_change_places(
    x: Annotated[Tensor, Shape("n 4 h w")], f: Annotated[Tensor, Shape("4 2 p q"), CONSTANT]
) -> Rewrite:
    """False: the channels of the first group are read by the filters of the second."""
    size = Value(4, "int")
    first, second = _halves(x, CHANNELS, size)
    swapped = Concat(second, first, axis=CHANNELS)
    return Rewrite(Conv(x, f, **WHOLE, group=2), Conv(swapped, f, **WHOLE, group=2))


@rules({"groups-together": False, "groups-together-with-bias": True})
def groups_together(
    bias: bool, x: Image, y: Image, f: Kernel, g: Kernel, b: Bias, d: Bias, window: GroupedWindow
) -> Rewrite:
    """Convolutions of two images of one shape by as many filters, end to end, as one in twice the groups."""
    joined = [Concat(x, y, axis=CHANNELS), Concat(f, g, axis=FILTERS)]
    if bias:
        joined.append(Concat(b, d, axis=LAST))

    return Rewrite(
        Concat(
            Conv(x, f, *([b] if bias else []), **window), Conv(y, g, *([d] if bias else []), **window), axis=CHANNELS
        ),
        Conv(*joined, **{**window, "group": 2 * window["group"]}),
    )


@rules({"strided-points-to-slice": False, "strided-points-to-slice-with-bias": True})
def strided_points_to_slice(bias: bool, x: Image, f: Points, b: Bias, s: Strides, d: Dilations, g: Groups) -> Rewrite:
    """Filters of one point that skip points, as filters of all points of a slice."""
    plain = {"pads": [0, 0, 0, 0], "dilations": d, "group": g}
    seen = Slice(x, axes=[-2, -1], starts=[0, 0], ends=[TO_THE_END, TO_THE_END], steps=s)
    biases = [b] if bias else []
    return Rewrite(
        Conv(x, f, *biases, **plain, strides=s), Conv(seen, f, *biases, **plain, strides=[1, 1]), where=[s != [1, 1]]
    )


@false_control("strided-points-start-at-the-second", of="strided-points-to-slice")
def strided_points_start_at_the_second(x: Image, f: Annotated[Tensor, Shape("c c 1 1"), CONSTANT]) -> Rewrite:
    """False: the slice has as many points, but others."""
    seen = Slice(x, axes=[-2, -1], starts=[1, 1], ends=[TO_THE_END, TO_THE_END], steps=[2, 2])
    return Rewrite(Conv(x, f, **{**WHOLE, "strides": [2, 2]}), Conv(seen, f, **WHOLE))


@rules({"grouped-points-to-products": False, "grouped-points-to-products-with-bias": True})
def grouped_points_to_products(bias: bool, x: Image, f: Points, b: Bias, d: Dilations, g: Groups) -> Rewrite:
    """Filters of one point in groups, as a product of matrices for each group."""
    filters, channels = f.dim(0), f.dim(1)
    weights = Reshape(f, shape=ints(g, filters / g, channels))
    columns = Reshape(x, shape=ints(0, g, channels, x.dim(2) * x.dim(3)))
    image = Reshape(MatMul(weights, columns), shape=ints(0, filters, x.dim(2), x.dim(3)))

    window = {**WHOLE, "dilations": d, "group": g}
    if bias:
        target = Add(image, Reshape(b, shape=[-1, 1, 1]))
        return Rewrite(Conv(x, f, b, **window), target, where=[g > 1])
    return Rewrite(Conv(x, f, **window), image, where=[g > 1])


@rules({"single-points-to-factors": False, "single-points-to-factors-with-bias": True})
def single_points_to_factors(
    bias: bool,
    x: Image,
    f: Annotated[Tensor, Shape("c 1 1 1"), CONSTANT],
    b: Annotated[Tensor, Shape("c"), CONSTANT],
    d: Dilations,
    g: Groups,
) -> Rewrite:
    """Filters of one point of one channel each are factors."""
    window = {**WHOLE, "dilations": d, "group": g}
    scaled = Mul(x, Reshape(f, shape=[-1, 1, 1]))

    if bias:
        return Rewrite(Conv(x, f, b, **window), Add(scaled, Reshape(b, shape=[-1, 1, 1])))
    return Rewrite(Conv(x, f, **window), scaled)
