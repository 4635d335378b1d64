"""Selections before what has axes before theirs: transposes, joins, convolutions and pools.

What is read keeps its rank, so that these axes stay where they are. An example is `slice-before-transpose`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

from rlflow.rules.declared.selections import EXTRACTS, SELECTIONS_OF_RANK, Extract, Selection
from rlflow.rules.dsl import (
    Attributes,
    OperatorConstructor,
    Rewrite,
    Shape,
    Tensor,
    Together,
    false_control,
    law,
    laws,
)
from rlflow.rules.dsl.operators import (
    Add,
    AveragePool,
    Concat,
    Conv,
    Div,
    GlobalAveragePool,
    MatMul,
    MaxPool,
    Mul,
    ReduceMean,
    ReduceSum,
    Slice,
    Softmax,
    Sub,
    Transpose,
)
from rlflow.rules.dsl.vocabulary import (
    BACKWARDS,
    CHANNELS,
    FILTERS,
    IMAGES,
    LAST,
    ROWS,
    WHOLE,
    Activation,
    AllChannels,
    Axis,
    FilterBias,
    Filters,
    GroupedWindow,
    Image,
    Matrices,
    MeanWindow,
    Permutation,
    PoolWindow,
    SomeAxes,
    Square,
    Window,
)

FAMILY = "reading"


@laws(
    {
        ("slice-before-add-of-lines", "gather-before-add-of-lines"): Add,
        ("slice-before-mul-of-lines", "gather-before-mul-of-lines"): Mul,
        ("slice-before-sub-of-lines", "gather-before-sub-of-lines"): Sub,
        ("slice-before-div-of-lines", "gather-before-div-of-lines"): Div,
    },
    over=SELECTIONS_OF_RANK,
)
def left_of_line(op: OperatorConstructor, x: Tensor, z: Tensor, read: Selection) -> Rewrite:
    """The right operand stays whole where it has length one along the axis."""
    return Rewrite(read(op(x, z)), op(read(x), z), where=[*read.where, z.dim(read.axis) == 1])


@laws(
    {
        ("slice-before-sub-of-lines-from-right", "gather-before-sub-of-lines-from-right"): Sub,
        ("slice-before-div-of-lines-from-right", "gather-before-div-of-lines-from-right"): Div,
    },
    over=SELECTIONS_OF_RANK,
)
def right_of_line(op: OperatorConstructor, x: Tensor, z: Tensor, read: Selection) -> Rewrite:
    """The left operand stays whole where it has length one along the axis."""
    return Rewrite(read(op(z, x)), op(z, read(x)), where=[*read.where, z.dim(read.axis) == 1])


@law("slice-before-rows", "gather-before-rows", over=EXTRACTS)
def rows(x: Activation, w: Matrices, read: Extract) -> Rewrite:
    """Rows of a product are products of rows of the left operand."""
    return Rewrite(read(MatMul(x, w), ROWS), MatMul(read(x, ROWS), w))


@law("slice-before-columns", "gather-before-columns", over=EXTRACTS)
def columns(x: Activation, w: Matrices, read: Extract) -> Rewrite:
    """Columns of a product are products with columns of the right operand."""
    return Rewrite(read(MatMul(x, w), LAST), MatMul(x, read(w, LAST)))


@law("slice-before-softmax-of-other-axis", "gather-before-softmax-of-other-axis", over=SELECTIONS_OF_RANK)
def softmax_of_other_axis(x: Tensor, read: Selection, s: Axis) -> Rewrite:
    """A softmax along an axis before the one that is read in part."""
    return Rewrite(read(Softmax(x, axis=s)), Softmax(read(x), axis=s), where=[*read.where, s < read.axis])


@law("slice-before-transpose", "gather-before-transpose", over=SELECTIONS_OF_RANK)
def transpose(x: Tensor, read: Selection, p: Permutation) -> Rewrite:
    """A part of a transpose is one along the axis that the transpose brings there."""
    part = read.along(p[read.axis] - p.length, x)
    return Rewrite(read(Transpose(x, perm=p)), Transpose(part, perm=p), where=read.where)


@laws(
    {
        ("slice-before-join-of-2", "gather-before-join-of-2"): 2,
        ("slice-before-join-of-3", "gather-before-join-of-3"): 3,
    },
    over=SELECTIONS_OF_RANK,
)
def join(count: int, x: Tensor, y: Tensor, z: Tensor, read: Selection, j: Axis) -> Rewrite:
    """A part of tensors that are joined along another axis is the join of a part of each."""
    joined = [x, y, z][:count]
    return Rewrite(
        read(Concat(*joined, axis=j)), Concat(*map(read, joined), axis=j), where=[*read.where, read.axis != j]
    )


@laws(
    {
        ("slice-before-reducesum-of-other-axes", "gather-before-reducesum-of-other-axes"): ReduceSum,
        ("slice-before-reducemean-of-other-axes", "gather-before-reducemean-of-other-axes"): ReduceMean,
    },
    over=SELECTIONS_OF_RANK,
)
def sum_of_other_axes(op: OperatorConstructor, x: Tensor, read: Selection, r: SomeAxes) -> Rewrite:
    """Sums and means along other axes than the one that is read in part."""
    return Rewrite(
        read(op(x, axes=r, keepdims=1)),
        op(read(x), axes=r, keepdims=1),
        where=[*read.where, ~r.contains(read.axis), r != [LAST], read.is_some_of(x)],
    )


@laws(
    {
        ("slice-before-convolution", "gather-before-convolution"): False,
        ("slice-before-convolution-with-bias", "gather-before-convolution-with-bias"): True,
    },
    over=EXTRACTS,
)
def convolution(bias: bool, x: Image, f: Filters, b: FilterBias, read: Extract, window: GroupedWindow) -> Rewrite:
    """A convolution is done only of the images of a batch that are read."""
    biases = [b] if bias else []
    return Rewrite(read(Conv(x, f, *biases, **window), IMAGES), Conv(read(x, IMAGES), f, *biases, **window))


@laws(
    {
        ("slice-before-filters", "gather-before-filters"): False,
        ("slice-before-filters-with-bias", "gather-before-filters-with-bias"): True,
    },
    over=EXTRACTS,
)
def filters(bias: bool, x: Image, f: AllChannels, b: FilterBias, read: Extract, window: Window) -> Rewrite:
    """A convolution is done only by the filters whose channels are read."""
    biases, some = ([b], [read(b, LAST)]) if bias else ([], [])
    return Rewrite(read(Conv(x, f, *biases, **window), CHANNELS), Conv(x, read(f, FILTERS), *some, **window))


NoWindow = Annotated[Attributes, Together()]
_MAXIMUM = {"pool": partial(MaxPool, dilations=[1, 1]), "window": PoolWindow}
_MEAN = {"pool": AveragePool, "window": MeanWindow}
_MEAN_OF_ALL = {"pool": GlobalAveragePool, "window": NoWindow}


@laws(
    {
        ("slice-before-maxpool-of-images", "gather-before-maxpool-of-images"): {"axis": IMAGES, **_MAXIMUM},
        ("slice-before-maxpool-of-channels", "gather-before-maxpool-of-channels"): {"axis": CHANNELS, **_MAXIMUM},
        ("slice-before-averagepool-of-images", "gather-before-averagepool-of-images"): {"axis": IMAGES, **_MEAN},
        ("slice-before-averagepool-of-channels", "gather-before-averagepool-of-channels"): {"axis": CHANNELS, **_MEAN},
        ("slice-before-globalaveragepool-of-images", "gather-before-globalaveragepool-of-images"): {
            "axis": IMAGES,
            **_MEAN_OF_ALL,
        },
        ("slice-before-globalaveragepool-of-channels", "gather-before-globalaveragepool-of-channels"): {
            "axis": CHANNELS,
            **_MEAN_OF_ALL,
        },
    },
    over=EXTRACTS,
)
def pooled(pool: Callable[..., Tensor], axis: int, x: Image, read: Extract, window: Attributes) -> Rewrite:
    """A pool sees one channel of one image at a time. ONNX Runtime does not pool no elements."""
    return Rewrite(read(pool(x, **window), axis), pool(read(x, axis), **window), where=[read.is_some_of(x, axis)])


@false_control("rows-of-a-product-are-columns-of-the-right", of="slice-before-rows")
def rows_of_a_product_are_columns_of_the_right(x: Square, w: Square) -> Rewrite:
    """False: rows of a product are made of rows of the left operand."""
    return Rewrite(Slice(MatMul(x, w), axes=[ROWS], **BACKWARDS), MatMul(x, Slice(w, axes=[LAST], **BACKWARDS)))


@false_control("slice-keeps-its-axis-past-transpose", of="slice-before-transpose")
def slice_keeps_its_axis_past_transpose(x: Square) -> Rewrite:
    """False: the axis moves with the transpose."""
    return Rewrite(
        Slice(Transpose(x, perm=[1, 0]), axes=[LAST], **BACKWARDS),
        Transpose(Slice(x, axes=[LAST], **BACKWARDS), perm=[1, 0]),
    )


@false_control("a-join-is-turned-part-by-part", of="slice-before-join-of-2")
def a_join_is_turned_part_by_part(x: Square, w: Square) -> Rewrite:
    """False: the parts change places, too."""
    return Rewrite(
        Slice(Concat(x, w, axis=LAST), axes=[LAST], **BACKWARDS),
        Concat(Slice(x, axes=[LAST], **BACKWARDS), Slice(w, axes=[LAST], **BACKWARDS), axis=LAST),
    )


@false_control("first-two-filters-of-two-groups", of="slice-before-filters")
def first_two_filters_of_two_groups(
    x: Annotated[Tensor, Shape("n 4 h w")], f: Annotated[Tensor, Shape("4 2 p q")]
) -> Rewrite:
    """False: the two filters would come to read one channel each."""
    two = {"starts": [0], "ends": [2], "steps": [1]}
    return Rewrite(
        Slice(Conv(x, f, **WHOLE, group=2), axes=[CHANNELS], **two),
        Conv(x, Slice(f, axes=[FILTERS], **two), **WHOLE, group=2),
    )
