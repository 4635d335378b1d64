"""Tensors and attributes that many rules speak of, each named once.

Images are (n, c, h, w), filters (m, c / group, p, q), and axes are counted from the end, as the library stores them.
"""

from __future__ import annotations

from typing import Annotated

from rlflow.rules.dsl.domains import (
    CONSTANT,
    LITERAL,
    Attribute,
    Attributes,
    AxisOf,
    Choice,
    GroupsOf,
    Integers,
    PermutationOf,
    Shape,
    ShapeOf,
    Together,
    Uniform,
)
from rlflow.rules.dsl.tensors import Tensor
from rlflow.rules.expression import TO_THE_END

LAST, ROWS = -1, -2
"""Axes of a matrix."""

CHANNELS, IMAGES = -3, -4
"""Axes of an image: its channels, and which image of the batch it is."""

INPUTS, FILTERS = -3, -4
"""Axes of filters: the channel of the image that is read, and which filter it is."""

Constant = Annotated[Tensor, CONSTANT]
Scalar = Annotated[Tensor, Shape("")]
Literal = Annotated[Tensor, Shape(""), LITERAL]

Permutation = Annotated[Attribute, PermutationOf("x")]
Axis = Annotated[Attribute, AxisOf("x")]
NewShape = Annotated[Attribute, ShapeOf("x")]
Factor = Annotated[Attribute, Uniform()]
OnOff = Annotated[Attribute, Choice(0, 1)]
Indices = Annotated[Tensor, Shape("...i")]
IndexRow = Annotated[Tensor, Shape("i")]

Approximation = Annotated[Attribute, Choice("none", "tanh")]
"""The two functions that are called Gelu."""

Bounds = Annotated[
    Attributes,
    Together(min=("lo", Choice(0.0, -1.0)), max=("hi", Choice(6.0, 1.0, 0.5))),
]
"""The bounds of a Clip."""

Row = Annotated[Tensor, Shape("n")]
Rows = Annotated[Tensor, Shape("...b n")]
Activation = Annotated[Tensor, Shape("...b m k")]
Weight = Annotated[Tensor, Shape("k n"), CONSTANT]
WeightRow = Annotated[Tensor, Shape("n"), CONSTANT]
TransposedWeight = Annotated[Tensor, Shape("n k"), CONSTANT]
"""The weight of a Gemm that turns it over (transB), as frameworks write it."""
GemmRows = Annotated[Tensor, Shape("m k")]
GemmFactors = Annotated[Attributes, Together(alpha=("alpha", Uniform()), beta=("beta", Uniform()))]
Square = Annotated[Tensor, Shape("n n")]

Matrix = Annotated[Tensor, Shape("k n")]
Matrices = Annotated[Tensor, Shape("...c k n")]
SomeAxes = Annotated[Attribute, Choice([-1], [-2], [-3], [-2, -1], [-3, -2], [-4, -1])]

Image = Annotated[Tensor, Shape("n c h w")]
Filters = Annotated[Tensor, Shape("m k p q")]
Kernel = Annotated[Tensor, Shape("m k p q"), CONSTANT]
AllChannels = Annotated[Tensor, Shape("m c p q")]
"""Filters that read all channels of an image: no groups."""

AllChannelsKernel = Annotated[Tensor, Shape("m c p q"), CONSTANT]
FilterBias = Annotated[Tensor, Shape("m")]
Bias = Annotated[Tensor, Shape("m"), CONSTANT]

_STRIDES = ("s", Integers(1, 2, count=2))
_PADS = ("p", Integers(0, 2, count=4))
_DILATIONS = ("d", Integers(1, 2, count=2))
_GROUP = ("g", GroupsOf("x", "f"))

Strides = Annotated[Attribute, Integers(1, 2, count=2)]
Dilations = Annotated[Attribute, Integers(1, 2, count=2)]
Groups = Annotated[Attribute, GroupsOf("x", "f")]

Window = Annotated[Attributes, Together(strides=_STRIDES, pads=_PADS, dilations=_DILATIONS)]
"""How filters without groups move over an image."""

InsideWindow = Annotated[Attributes, Together(strides=_STRIDES, dilations=_DILATIONS)]
"""The same without padding, whose pads the rule writes."""

GroupedWindow = Annotated[Attributes, Together(strides=_STRIDES, pads=_PADS, dilations=_DILATIONS, group=_GROUP)]

_KERNEL_SHAPE = ("w", Integers(1, 3, count=2))
_NARROW_PADS = ("q", Integers(0, 1, count=4))

PoolWindow = Annotated[Attributes, Together(kernel_shape=_KERNEL_SHAPE, strides=_STRIDES, pads=_NARROW_PADS)]
"""How a pool moves over an image."""

MeanWindow = Annotated[
    Attributes,
    Together(kernel_shape=_KERNEL_SHAPE, strides=_STRIDES, pads=_NARROW_PADS, count_include_pad=("c", Choice(0, 1))),
]
"""The same of a mean, which may count the zeros around the image."""

WHOLE = {"strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1]}
"""A window at every place of the image, and nowhere outside it."""

_STARTS = ("b", Choice([0], [0], [1], [-1], [-2]))
_ENDS = ("e", Choice([1], [2], [3], [-1], [TO_THE_END]))
_STEPS = ("t", Choice([1], [1], [2], [-1]))

Extent = Annotated[Attributes, Together(starts=_STARTS, ends=_ENDS, steps=_STEPS)]
"""What a slice reads along an axis that the rule names."""

AnySlice = Annotated[
    Attributes,
    Together(axes=("axis", Choice([-1], [-2], [-3], [-4])), starts=_STARTS, ends=_ENDS, steps=_STEPS),
]
"""A slice along any axis."""

AnyAxis = Annotated[Attribute, Choice(-1, -2, -3, -4)]

BACKWARDS = {"starts": [-1], "ends": [-TO_THE_END], "steps": [-1]}
"""A slice that keeps the length of its axis, so that types tell nothing."""
