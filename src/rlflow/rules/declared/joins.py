"""Joins and splits: parts that lie end to end can be worked on whole, and the other way round.

Every rule is declared in the direction that works on the parts; its reverse, where it is one, works on the whole. An
example is `softmax-of-parts`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

from rlflow.rules.dsl import (
    Attribute,
    Attributes,
    Choice,
    GroupsOf,
    Integers,
    OperatorConstructor,
    Partition,
    Rewrite,
    Shape,
    Sizes,
    Tensor,
    Together,
    false_control,
    ints,
    rule,
    rules,
)
from rlflow.rules.dsl.operators import (
    Add,
    AveragePool,
    Clip,
    Concat,
    Conv,
    Div,
    Erf,
    Exp,
    Gelu,
    LayerNormalization,
    Log,
    MatMul,
    MaxPool,
    Mul,
    Neg,
    Reciprocal,
    Relu,
    Sigmoid,
    Softmax,
    Split,
    Sqrt,
    Sub,
    Tanh,
    Transpose,
)
from rlflow.rules.dsl.vocabulary import (
    CHANNELS,
    FILTERS,
    IMAGES,
    INPUTS,
    LAST,
    ROWS,
    WHOLE,
    Activation,
    AllChannels,
    Approximation,
    Axis,
    Bounds,
    Factor,
    Filters,
    GroupedWindow,
    Image,
    Matrices,
    Permutation,
    Row,
    Window,
)

FAMILY = "join"

Grid = Annotated[Tensor, Shape("m n")]


@rules(
    {
        "add-of-parts": Add,
        "sub-of-parts": Sub,
        "mul-of-parts": Mul,
        "div-of-parts": Div,
    }
)
def two_of_parts(op: OperatorConstructor, x: Tensor, y: Tensor, v: Tensor, w: Tensor, k: Axis) -> Rewrite:
    """A function of two joins whose parts are equally long, as the join of the parts' functions."""
    return Rewrite(
        op(Concat(x, y, axis=k), Concat(v, w, axis=k)),
        Concat(op(x, v), op(y, w), axis=k),
        where=[x.dim(k) == v.dim(k)],
    )


@rules(
    {
        "add-of-whole": Add,
        "sub-of-whole": Sub,
        "mul-of-whole": Mul,
        "div-of-whole": Div,
    }
)
def two_of_whole(op: OperatorConstructor, x: Tensor, y: Tensor, v: Tensor, w: Tensor, k: Axis) -> Rewrite:
    """A join of functions of two parts, as one function of joins, where nothing broadcasts."""
    return Rewrite(
        Concat(op(x, v), op(y, w), axis=k),
        op(Concat(x, y, axis=k), Concat(v, w, axis=k)),
        where=[x.shape == v.shape, y.shape == w.shape],
    )


@false_control("sum-of-crossed-parts", of="add-of-parts")
def sum_of_crossed_parts(x: Grid, y: Grid, v: Grid, w: Grid) -> Rewrite:
    """False: each first part belongs to the other first one."""
    return Rewrite(Add(Concat(x, y, axis=LAST), Concat(v, w, axis=LAST)), Concat(Add(x, w), Add(y, v), axis=LAST))


@rules(
    {
        ("relu-of-parts", "relu-of-whole"): Relu,
        ("neg-of-parts", "neg-of-whole"): Neg,
        ("reciprocal-of-parts", "reciprocal-of-whole"): Reciprocal,
        ("exp-of-parts", "exp-of-whole"): Exp,
        ("erf-of-parts", "erf-of-whole"): Erf,
        ("tanh-of-parts", "tanh-of-whole"): Tanh,
        ("sqrt-of-parts", "sqrt-of-whole"): Sqrt,
        ("log-of-parts", "log-of-whole"): Log,
        ("sigmoid-of-parts", "sigmoid-of-whole"): Sigmoid,
    }
)
def function_of_parts(f: OperatorConstructor, x: Tensor, y: Tensor, k: Axis) -> Rewrite:
    """A function of the elements of a join, as the join of the parts' functions."""
    return Rewrite(f(Concat(x, y, axis=k)), Concat(f(x), f(y), axis=k))


@rule("gelu-of-parts", "gelu-of-whole")
def gelu_of_parts(x: Tensor, y: Tensor, k: Axis, a: Approximation) -> Rewrite:
    """A Gelu of a join, as the join of the parts' Gelus."""
    whole = Gelu(Concat(x, y, axis=k), approximate=a)
    return Rewrite(whole, Concat(Gelu(x, approximate=a), Gelu(y, approximate=a), axis=k))


@rule("clip-of-parts", "clip-of-whole")
def clip_of_parts(x: Tensor, y: Tensor, k: Axis, bounds: Bounds) -> Rewrite:
    """A Clip of a join, as the join of the parts' Clips."""
    return Rewrite(Clip(Concat(x, y, axis=k), **bounds), Concat(Clip(x, **bounds), Clip(y, **bounds), axis=k))


@rules(
    {
        ("add-to-lines-of-parts", "add-to-lines-of-whole"): (Add, False),
        ("add-to-scalar-of-parts", "add-to-scalar-of-whole"): (Add, True),
        ("sub-to-lines-of-parts", "sub-to-lines-of-whole"): (Sub, False),
        ("sub-to-scalar-of-parts", "sub-to-scalar-of-whole"): (Sub, True),
        ("mul-to-lines-of-parts", "mul-to-lines-of-whole"): (Mul, False),
        ("mul-to-scalar-of-parts", "mul-to-scalar-of-whole"): (Mul, True),
        ("div-to-lines-of-parts", "div-to-lines-of-whole"): (Div, False),
        ("div-to-scalar-of-parts", "div-to-scalar-of-whole"): (Div, True),
    }
)
def one_of_parts(case: tuple[OperatorConstructor, bool], x: Tensor, y: Tensor, z: Tensor, k: Axis) -> Rewrite:
    """A function of a join and an operand that is the same all along the axis."""
    op, is_scalar = case
    condition = z.elements == 1 if is_scalar else z.dim(k) == 1
    return Rewrite(op(Concat(x, y, axis=k), z), Concat(op(x, z), op(y, z), axis=k), where=[condition])


Upper = Annotated[Tensor, Shape("...b m n")]
Lower = Annotated[Tensor, Shape("...b l n")]


@rule("softmax-of-parts", "softmax-of-whole")
def softmax_of_parts(x: Upper, y: Lower) -> Rewrite:
    """A softmax looks along the last axis alone."""
    return Rewrite(Softmax(Concat(x, y, axis=ROWS)), Concat(Softmax(x), Softmax(y), axis=ROWS))


@false_control("softmax-of-any-parts", of="softmax-of-parts")
def softmax_of_any_parts(x: Tensor, y: Tensor, k: Axis) -> Rewrite:
    """False: the parts of a row do not know of each other."""
    return Rewrite(Softmax(Concat(x, y, axis=k)), Concat(Softmax(x), Softmax(y), axis=k))


@rule("layer-norm-of-parts", "layer-norm-of-whole")
def layer_norm_of_parts(x: Upper, y: Lower, g: Row, c: Row, e: Factor) -> Rewrite:
    """A normalisation looks along the last axis alone."""
    return Rewrite(
        LayerNormalization(Concat(x, y, axis=ROWS), g, c, epsilon=e),
        Concat(LayerNormalization(x, g, c, epsilon=e), LayerNormalization(y, g, c, epsilon=e), axis=ROWS),
    )


@rule("product-of-row-parts", "product-of-whole-rows")
def product_of_row_parts(
    x: Activation, y: Annotated[Tensor, Shape("...b l k")], w: Annotated[Tensor, Shape("...b k n")]
) -> Rewrite:
    """A product of matrices in blocks of rows of the left."""
    return Rewrite(MatMul(Concat(x, y, axis=ROWS), w), Concat(MatMul(x, w), MatMul(y, w), axis=ROWS))


@rule("product-of-column-parts", "product-of-whole-columns")
def product_of_column_parts(x: Activation, v: Matrices, w: Annotated[Tensor, Shape("...c k l")]) -> Rewrite:
    """A product of matrices in blocks of columns of the right."""
    return Rewrite(MatMul(x, Concat(v, w, axis=LAST)), Concat(MatMul(x, v), MatMul(x, w), axis=LAST))


@rule("product-of-inner-parts", "product-of-whole-inner")
def product_of_inner_parts(
    x: Activation,
    y: Annotated[Tensor, Shape("...b m l")],
    v: Matrices,
    w: Annotated[Tensor, Shape("...c l n")],
) -> Rewrite:
    """A product of matrices in blocks of what is summed over."""
    return Rewrite(MatMul(Concat(x, y, axis=LAST), Concat(v, w, axis=ROWS)), Add(MatMul(x, v), MatMul(y, w)))


@rule("product-of-left-sum", "left-sum-of-products")
def product_of_left_sum(x: Activation, y: Activation, w: Matrices) -> Rewrite:
    """The product of a sum."""
    return Rewrite(MatMul(Add(x, y), w), Add(MatMul(x, w), MatMul(y, w)))


@rule("product-of-right-sum", "right-sum-of-products")
def product_of_right_sum(x: Activation, v: Matrices, w: Matrices) -> Rewrite:
    """The product with a sum."""
    return Rewrite(MatMul(x, Add(v, w)), Add(MatMul(x, v), MatMul(x, w)))


@rules({"part-0-of-join": 0, "part-1-of-join": 1})
def part_of_join(
    part: int, x: Tensor, y: Tensor, k: Axis, s: Annotated[Attribute, Sizes(axis="k", tensors=("x", "y"))]
) -> Rewrite:
    """The parts of a join are what was joined."""
    return Rewrite(
        Split(Concat(x, y, axis=k), axis=k, split=s)[part],
        (x, y)[part],
        where=[s == ints(x.dim(k), y.dim(k))],
    )


@false_control("any-part-of-join", of="part-0-of-join")
def any_part_of_join(
    x: Tensor, y: Tensor, k: Axis, s: Annotated[Attribute, Sizes(axis="k", tensors=("y", "x"))]
) -> Rewrite:
    """False: the first part is not the second."""
    return Rewrite(Split(Concat(x, y, axis=k), axis=k, split=s)[0], y)


@rules(
    {
        "join-of-2-parts": {"count": 2, "s": Annotated[Attribute, Partition("x", axis="k", parts=2)]},
        "join-of-3-parts": {"count": 3, "s": Annotated[Attribute, Partition("x", axis="k", parts=3)]},
    }
)
def join_of_parts(count: int, x: Tensor, k: Axis, s: Attribute) -> Rewrite:
    """The join of all parts of a split is the tensor that was split."""
    parts = Split(x, axis=k, split=s)
    return Rewrite(Concat(*(parts[i] for i in range(count)), axis=k), x, where=[s.length == count])


@rule("join-first-two", "open-first-two")
def join_first_two(x: Tensor, y: Tensor, z: Tensor, k: Axis) -> Rewrite:
    """A join of three, as one of a join of two and the last."""
    return Rewrite(Concat(x, y, z, axis=k), Concat(Concat(x, y, axis=k), z, axis=k))


@rule("join-last-two", "open-last-two")
def join_last_two(x: Tensor, y: Tensor, z: Tensor, k: Axis) -> Rewrite:
    """A join of three, as one of the first and a join of the others."""
    return Rewrite(Concat(x, y, z, axis=k), Concat(x, Concat(y, z, axis=k), axis=k))


@false_control("joins-commute", of="join-first-two")
def joins_commute(x: Tensor, y: Tensor, k: Axis) -> Rewrite:
    """False: parts that lie end to end have an order."""
    return Rewrite(Concat(x, y, axis=k), Concat(y, x, axis=k))


@rule("cross-joins")
def cross_joins(x: Tensor, y: Tensor, v: Tensor, w: Tensor, j: Axis, k: Axis) -> Rewrite:
    """Joins along two axes, in either order."""
    return Rewrite(
        Concat(Concat(x, y, axis=k), Concat(v, w, axis=k), axis=j),
        Concat(Concat(x, v, axis=j), Concat(y, w, axis=j), axis=k),
        where=[j != k, x.dim(k) == v.dim(k)],
    )


@false_control("joins-along-one-axis-cross", of="cross-joins")
def joins_along_one_axis_cross(x: Tensor, y: Tensor, v: Tensor, w: Tensor, k: Axis) -> Rewrite:
    """False: along one axis, the order counts."""
    return Rewrite(
        Concat(Concat(x, y, axis=k), Concat(v, w, axis=k), axis=k),
        Concat(Concat(x, v, axis=k), Concat(y, w, axis=k), axis=k),
    )


@rule("transpose-of-parts")
def transpose_of_parts(x: Tensor, y: Tensor, k: Axis, p: Permutation) -> Rewrite:
    """A transpose takes the axis of a join with it."""
    return Rewrite(
        Transpose(Concat(x, y, axis=k), perm=p),
        Concat(Transpose(x, perm=p), Transpose(y, perm=p), axis=p.inverse()[k] - p.length),
    )


@rule("transpose-of-whole")
def transpose_of_whole(x: Tensor, y: Tensor, k: Axis, p: Permutation) -> Rewrite:
    """A join of transposes, as the transpose of a join along the axis that goes there."""
    return Rewrite(
        Concat(Transpose(x, perm=p), Transpose(y, perm=p), axis=k),
        Transpose(Concat(x, y, axis=p[k] - p.length), perm=p),
    )


OtherImages = Annotated[Tensor, Shape("l c h w")]
OtherChannels = Annotated[Tensor, Shape("n e h w")]
InGroups = Annotated[Attributes, Together(group=("g", GroupsOf("x", "f")))]


@rule("convolution-of-image-parts", "convolution-of-whole-images")
def convolution_of_image_parts(x: Image, y: OtherImages, f: Filters, window: GroupedWindow) -> Rewrite:
    """Convolutions of the parts of a batch, by filters of any groups."""
    return Rewrite(
        Conv(Concat(x, y, axis=IMAGES), f, **window),
        Concat(Conv(x, f, **window), Conv(y, f, **window), axis=IMAGES),
    )


@rule("convolution-of-image-sum", "sum-of-convolved-images")
def convolution_of_image_sum(x: Image, y: Image, f: Filters, window: GroupedWindow) -> Rewrite:
    """Convolutions of a sum of images, by filters of any groups."""
    return Rewrite(Conv(Add(x, y), f, **window), Add(Conv(x, f, **window), Conv(y, f, **window)))


@rule("convolution-of-filter-parts", "convolution-of-whole-filters")
def convolution_of_filter_parts(
    x: Image, f: AllChannels, g: Annotated[Tensor, Shape("l c p q")], window: Window
) -> Rewrite:
    """Convolutions by some of the filters."""
    return Rewrite(
        Conv(x, Concat(f, g, axis=FILTERS), **window),
        Concat(Conv(x, f, **window), Conv(x, g, **window), axis=CHANNELS),
    )


@false_control("convolution-of-filter-parts-in-groups", of="convolution-of-filter-parts")
def convolution_of_filter_parts_in_groups(x: Image, f: Filters, g: Filters, groups: InGroups) -> Rewrite:
    """False: half of all filters in groups are not half of each group."""
    return Rewrite(
        Conv(x, Concat(f, g, axis=FILTERS), **WHOLE, **groups),
        Concat(Conv(x, f, **WHOLE, **groups), Conv(x, g, **WHOLE, **groups), axis=CHANNELS),
    )


@rule("convolution-of-channel-parts")
def convolution_of_channel_parts(
    x: Image, y: OtherChannels, f: AllChannels, g: Annotated[Tensor, Shape("m e p q")], window: Window
) -> Rewrite:
    """Convolutions by what filters read of some of the channels that are summed over."""
    return Rewrite(
        Conv(Concat(x, y, axis=CHANNELS), Concat(f, g, axis=INPUTS), **window),
        Add(Conv(x, f, **window), Conv(y, g, **window)),
    )


_KERNEL_SHAPE = ("w", Integers(1, 3, count=2))
_STRIDES = ("s", Integers(1, 2, count=2))
_PADS = ("p", Integers(0, 1, count=4))
PoolWindow = Annotated[Attributes, Together(kernel_shape=_KERNEL_SHAPE, strides=_STRIDES, pads=_PADS)]
MeanWindow = Annotated[
    Attributes,
    Together(kernel_shape=_KERNEL_SHAPE, strides=_STRIDES, pads=_PADS, count_include_pad=("i", Choice(0, 1))),
]


_MAXIMUM = {"pool": partial(MaxPool, dilations=[1, 1]), "window": PoolWindow}
_MEAN = {"pool": AveragePool, "window": MeanWindow}
_OF_IMAGES = {"axis": IMAGES, "y": OtherImages}
_OF_CHANNELS = {"axis": CHANNELS, "y": OtherChannels}


@rules(
    {
        "maxpool-of-image-parts": {**_MAXIMUM, **_OF_IMAGES, "apart": True},
        "maxpool-of-image-whole": {**_MAXIMUM, **_OF_IMAGES, "apart": False},
        "maxpool-of-channel-parts": {**_MAXIMUM, **_OF_CHANNELS, "apart": True},
        "maxpool-of-channel-whole": {**_MAXIMUM, **_OF_CHANNELS, "apart": False},
        "averagepool-of-image-parts": {**_MEAN, **_OF_IMAGES, "apart": True},
        "averagepool-of-image-whole": {**_MEAN, **_OF_IMAGES, "apart": False},
        "averagepool-of-channel-parts": {**_MEAN, **_OF_CHANNELS, "apart": True},
        "averagepool-of-channel-whole": {**_MEAN, **_OF_CHANNELS, "apart": False},
    }
)
def pool_of_parts(
    pool: Callable[..., Tensor], axis: int, apart: bool, x: Image, y: Tensor, window: Attributes
) -> Rewrite:
    """A pool sees one image and one channel at a time, and ONNX Runtime's pool one channel at least."""
    whole = pool(Concat(x, y, axis=axis), **window)
    parts = Concat(pool(x, **window), pool(y, **window), axis=axis)
    if not apart:
        return Rewrite(parts, whole)
    return Rewrite(whole, parts, where=[x.dim(1) >= 1, y.dim(1) >= 1] if axis == CHANNELS else [])
