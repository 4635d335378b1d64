"""Padding: zeros around filters or images pass whatever keeps zero at zero.

These rules undo what enlarging filters does (TASO, section 2), or bring the zeros to where they are done with. An
example is `pad-before-relu`.
"""

from __future__ import annotations

from typing import Annotated

from rlflow.rules.dsl import (
    Attribute,
    Attributes,
    Choice,
    Condition,
    GroupsOf,
    Integers,
    OperatorConstructor,
    Rewrite,
    Shape,
    Tensor,
    Together,
    Value,
    false_control,
    ints,
    rule,
    rules,
)
from rlflow.rules.dsl.operators import Add, AveragePool, Concat, Conv, Exp, Mul, Pad, Relu
from rlflow.rules.dsl.vocabulary import CHANNELS, IMAGES, LAST, Filters, Image, OnOff, Scalar

FAMILY = "convolution"

Pads = Annotated[Attribute, Integers(0, 2, count=8)]
Around = Choice([0, 0, 1, 1, 0, 0, 1, 1], [0, 0, 0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 0, 0, 1], [1, 0, 1, 0, 0, 1, 0, 1])
PadsAround = Annotated[Attribute, Around]


def _within_images(pads: Value) -> list[Condition]:
    """Nothing is put around axes 0 and 1."""
    return [pads[i] == 0 for i in (0, 1, 4, 5)]


@rules(
    {"drop-empty-pad-2": {"rank": 2, "x": Annotated[Tensor, Shape("m k")]}, "drop-empty-pad-4": {"rank": 4, "x": Image}}
)
def drop_empty_pad(rank: int, x: Tensor) -> Rewrite:
    """A pad of no width around a matrix or an image does nothing."""
    return Rewrite(Pad(x, pads=[0, 0] * rank), x)


@rule("drop-mean-of-points")
def drop_mean_of_points(x: Image, i: OnOff) -> Rewrite:
    """The mean of a single point is the point."""
    return Rewrite(AveragePool(x, kernel_shape=[1, 1], strides=[1, 1], pads=[0] * 4, count_include_pad=i), x)


@rule("pad-before-relu", "pad-after-relu")
def pad_before_relu(x: Image, p: Pads) -> Rewrite:
    """The positive part of zero is zero."""
    return Rewrite(Pad(Relu(x), pads=p), Relu(Pad(x, pads=p)))


@rules({("pad-before-add", "pad-after-add"): Add, ("pad-before-mul", "pad-after-mul"): Mul})
def pad_before_two(op: OperatorConstructor, x: Image, y: Image, p: Pads) -> Rewrite:
    """Zeros around a sum or a product are zeros around both operands."""
    return Rewrite(Pad(op(x, y), pads=p), op(Pad(x, pads=p), Pad(y, pads=p)))


@rule("pad-before-scale", "pad-after-scale")
def pad_before_scale(x: Image, s: Scalar, p: Pads) -> Rewrite:
    """A factor keeps zero at zero."""
    return Rewrite(Pad(Mul(x, s), pads=p), Mul(Pad(x, pads=p), s))


@false_control("pad-passes-exp", of="pad-before-relu")
def pad_passes_exp(x: Image) -> Rewrite:
    """False: the exponential of zero is one."""
    around = [0, 0, 1, 1, 0, 0, 1, 1]
    return Rewrite(Pad(Exp(x), pads=around), Exp(Pad(x, pads=around)))


@false_control("pad-passes-shift", of="pad-before-scale")
def pad_passes_shift(x: Image, s: Scalar) -> Rewrite:
    """False: a shift moves zero."""
    around = [0, 0, 1, 1, 0, 0, 1, 1]
    return Rewrite(Pad(Add(x, s), pads=around), Add(Pad(x, pads=around), s))


@rules(
    {
        ("pad-of-image-parts", "pad-of-image-whole"): {"axis": IMAGES, "y": Annotated[Tensor, Shape("m c h w")]},
        ("pad-of-channel-parts", "pad-of-channel-whole"): {"axis": CHANNELS, "y": Annotated[Tensor, Shape("n e h w")]},
    }
)
def pad_of_parts(axis: int, x: Image, y: Tensor, p: PadsAround) -> Rewrite:
    """Zeros around the windows of some images or channels, or of all of them."""
    return Rewrite(
        Pad(Concat(x, y, axis=axis), pads=p),
        Concat(Pad(x, pads=p), Pad(y, pads=p), axis=axis),
        where=_within_images(p),
    )


@false_control("pad-between-parts", of="pad-of-channel-parts")
def pad_between_parts(x: Image, y: Image) -> Rewrite:
    """False: zeros come to lie between the parts."""
    right, left = [0, 0, 1, 0, 0, 0, 1, 1], [0, 0, 1, 1, 0, 0, 1, 0]
    return Rewrite(
        Pad(Concat(x, y, axis=LAST), pads=[0, 0, 1, 1, 0, 0, 1, 1]),
        Concat(Pad(x, pads=right), Pad(y, pads=left), axis=LAST),
    )


LooseWindow = Annotated[
    Attributes,
    Together(
        strides=("s", Integers(1, 2, count=2)),
        pads=("a", Integers(1, 3, count=4)),
        group=("g", GroupsOf("x", "f")),
    ),
]


@rule("shrink-filters")
def shrink_filters(x: Image, f: Filters, window: LooseWindow, p: PadsAround) -> Rewrite:
    """The inverse of enlarging: without their zeros, filters need that much less around the image."""
    pads = window["pads"]
    less = ints(*(pads[i] - p[j] for i, j in enumerate((2, 3, 6, 7))))
    return Rewrite(
        Conv(x, Pad(f, pads=p), **window, dilations=[1, 1]),
        Conv(x, f, **{**window, "pads": less}, dilations=[1, 1]),
        where=_within_images(p),
    )
