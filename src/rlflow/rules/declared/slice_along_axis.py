"""Slices before what has axes before theirs: transposes, joins, convolutions and pools.

What is read keeps its rank, so that these axes stay where they are. An example is `slice-before-transpose`.
"""

from __future__ import annotations

from typing import Annotated

from rlflow.rules.declared.slice_pushdown import along, is_single, reads_some_of
from rlflow.rules.dsl import (
    Attributes,
    Condition,
    OperatorConstructor,
    Rewrite,
    Shape,
    Tensor,
    false_control,
    ints,
    reads_some,
    rule,
    rules,
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
    AnySlice,
    Axis,
    Extent,
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


def _reads_some_of(x: Tensor, axis: int, extent: Attributes) -> Condition:
    return reads_some(x.dim(axis), extent["starts"][0], extent["ends"][0], extent["steps"][0])


@rules(
    {
        "slice-before-add-of-lines": Add,
        "slice-before-mul-of-lines": Mul,
        "slice-before-sub-of-lines": Sub,
        "slice-before-div-of-lines": Div,
    }
)
def slice_before_left_of_line(op: OperatorConstructor, x: Tensor, z: Tensor, part: AnySlice) -> Rewrite:
    """The right operand stays whole where it has length one along the axis that is sliced."""
    return Rewrite(Slice(op(x, z), **part), op(Slice(x, **part), z), where=[is_single(part), z.dim(along(part)) == 1])


@rules(
    {
        "slice-before-sub-of-lines-from-right": Sub,
        "slice-before-div-of-lines-from-right": Div,
    }
)
def slice_before_right_of_line(op: OperatorConstructor, x: Tensor, z: Tensor, part: AnySlice) -> Rewrite:
    """The left operand stays whole where it has length one along the axis that is sliced."""
    return Rewrite(Slice(op(z, x), **part), op(z, Slice(x, **part)), where=[is_single(part), z.dim(along(part)) == 1])


@rule("slice-before-rows")
def slice_before_rows(x: Activation, w: Matrices, extent: Extent) -> Rewrite:
    """Rows of a product are products of rows of the left operand."""
    return Rewrite(Slice(MatMul(x, w), axes=[ROWS], **extent), MatMul(Slice(x, axes=[ROWS], **extent), w))


@rule("slice-before-columns")
def slice_before_columns(x: Activation, w: Matrices, extent: Extent) -> Rewrite:
    """Columns of a product are products with columns of the right operand."""
    return Rewrite(Slice(MatMul(x, w), axes=[LAST], **extent), MatMul(x, Slice(w, axes=[LAST], **extent)))


@rule("slice-before-softmax-of-other-axis")
def slice_before_softmax_of_other_axis(x: Tensor, part: AnySlice, s: Axis) -> Rewrite:
    """A softmax along an axis before the one that is sliced."""
    return Rewrite(
        Slice(Softmax(x, axis=s), **part), Softmax(Slice(x, **part), axis=s), where=[is_single(part), s < along(part)]
    )


@rule("slice-before-transpose")
def slice_before_transpose(x: Tensor, part: AnySlice, p: Permutation) -> Rewrite:
    """A slice of a transpose is one along the axis that the transpose brings there."""
    return Rewrite(
        Slice(Transpose(x, perm=p), **part),
        Transpose(Slice(x, **{**part, "axes": ints(p[along(part)] - p.length)}), perm=p),
        where=[is_single(part)],
    )


@rule("slice-before-join-of-2")
def slice_before_join_of_2(x: Tensor, y: Tensor, part: AnySlice, j: Axis) -> Rewrite:
    """A slice of two parts joined along another axis is one of each part."""
    return Rewrite(
        Slice(Concat(x, y, axis=j), **part),
        Concat(Slice(x, **part), Slice(y, **part), axis=j),
        where=[is_single(part), along(part) != j],
    )


@rule("slice-before-join-of-3")
def slice_before_join_of_3(x: Tensor, y: Tensor, z: Tensor, part: AnySlice, j: Axis) -> Rewrite:
    """A slice of three parts joined along another axis is one of each part."""
    return Rewrite(
        Slice(Concat(x, y, z, axis=j), **part),
        Concat(Slice(x, **part), Slice(y, **part), Slice(z, **part), axis=j),
        where=[is_single(part), along(part) != j],
    )


@rules({"slice-before-reducesum-of-other-axes": ReduceSum, "slice-before-reducemean-of-other-axes": ReduceMean})
def slice_before_sum_of_other_axes(op: OperatorConstructor, x: Tensor, part: AnySlice, r: SomeAxes) -> Rewrite:
    """Sums and means along other axes than the one that is sliced."""
    return Rewrite(
        Slice(op(x, axes=r, keepdims=1), **part),
        op(Slice(x, **part), axes=r, keepdims=1),
        where=[is_single(part), ~r.contains(along(part)), r != [LAST], reads_some_of(x, part)],
    )


@rules({"slice-before-convolution": False, "slice-before-convolution-with-bias": True})
def slice_before_convolution(
    bias: bool, x: Image, f: Filters, b: FilterBias, extent: Extent, window: GroupedWindow
) -> Rewrite:
    """A convolution is done of the images of a batch that are asked for."""
    biases = [b] if bias else []
    return Rewrite(
        Slice(Conv(x, f, *biases, **window), axes=[IMAGES], **extent),
        Conv(Slice(x, axes=[IMAGES], **extent), f, *biases, **window),
    )


@rules({"slice-before-filters": False, "slice-before-filters-with-bias": True})
def slice_before_filters(
    bias: bool, x: Image, f: AllChannels, b: FilterBias, extent: Extent, window: Window
) -> Rewrite:
    """A convolution is done by the filters whose channels are asked for."""
    biases, read = ([b], [Slice(b, axes=[LAST], **extent)]) if bias else ([], [])
    return Rewrite(
        Slice(Conv(x, f, *biases, **window), axes=[CHANNELS], **extent),
        Conv(x, Slice(f, axes=[FILTERS], **extent), *read, **window),
    )


@rules({"slice-before-maxpool-of-images": IMAGES, "slice-before-maxpool-of-channels": CHANNELS})
def slice_before_maxpool(axis: int, x: Image, extent: Extent, window: PoolWindow) -> Rewrite:
    """A pool sees one channel of one image at a time. ONNX Runtime does not pool no elements."""
    return Rewrite(
        Slice(MaxPool(x, **window, dilations=[1, 1]), axes=[axis], **extent),
        MaxPool(Slice(x, axes=[axis], **extent), **window, dilations=[1, 1]),
        where=[_reads_some_of(x, axis, extent)],
    )


@rules({"slice-before-averagepool-of-images": IMAGES, "slice-before-averagepool-of-channels": CHANNELS})
def slice_before_averagepool(axis: int, x: Image, extent: Extent, window: MeanWindow) -> Rewrite:
    """A pool of means sees one channel of one image at a time."""
    return Rewrite(
        Slice(AveragePool(x, **window), axes=[axis], **extent),
        AveragePool(Slice(x, axes=[axis], **extent), **window),
        where=[_reads_some_of(x, axis, extent)],
    )


@rules({"slice-before-globalaveragepool-of-images": IMAGES, "slice-before-globalaveragepool-of-channels": CHANNELS})
def slice_before_globalaveragepool(axis: int, x: Image, extent: Extent) -> Rewrite:
    """The mean of all points is one of each channel of each image."""
    return Rewrite(
        Slice(GlobalAveragePool(x), axes=[axis], **extent),
        GlobalAveragePool(Slice(x, axes=[axis], **extent)),
        where=[_reads_some_of(x, axis, extent)],
    )


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
