"""Gathers before what has axes before theirs, as in `slice_along_axis`.

Indices are a vector, so that what is selected keeps its rank. An example is `gather-before-transpose`.
"""

from __future__ import annotations

from rlflow.rules.dsl import OperatorConstructor, Rewrite, Tensor, rule, rules
from rlflow.rules.dsl.operators import (
    Add,
    AveragePool,
    Concat,
    Conv,
    Div,
    Gather,
    GlobalAveragePool,
    MatMul,
    MaxPool,
    Mul,
    ReduceMean,
    ReduceSum,
    Softmax,
    Sub,
    Transpose,
)
from rlflow.rules.dsl.vocabulary import (
    CHANNELS,
    FILTERS,
    IMAGES,
    LAST,
    ROWS,
    Activation,
    AllChannels,
    AnyAxis,
    Axis,
    FilterBias,
    Filters,
    GroupedWindow,
    Image,
    IndexRow,
    Matrices,
    MeanWindow,
    Permutation,
    PoolWindow,
    SomeAxes,
    Window,
)

FAMILY = "reading"


@rules(
    {
        "gather-before-add-of-lines": Add,
        "gather-before-mul-of-lines": Mul,
        "gather-before-sub-of-lines": Sub,
        "gather-before-div-of-lines": Div,
    }
)
def gather_before_left_of_line(op: OperatorConstructor, x: Tensor, z: Tensor, axis: AnyAxis, i: IndexRow) -> Rewrite:
    """The right operand stays whole where it has length one along the axis that is gathered."""
    return Rewrite(Gather(op(x, z), i, axis=axis), op(Gather(x, i, axis=axis), z), where=[z.dim(axis) == 1])


@rules(
    {
        "gather-before-sub-of-lines-from-right": Sub,
        "gather-before-div-of-lines-from-right": Div,
    }
)
def gather_before_right_of_line(op: OperatorConstructor, x: Tensor, z: Tensor, axis: AnyAxis, i: IndexRow) -> Rewrite:
    """The left operand stays whole where it has length one along the axis that is gathered."""
    return Rewrite(Gather(op(z, x), i, axis=axis), op(z, Gather(x, i, axis=axis)), where=[z.dim(axis) == 1])


@rule("gather-before-rows")
def gather_before_rows(x: Activation, w: Matrices, i: IndexRow) -> Rewrite:
    """Rows of a product are products of rows of the left operand."""
    return Rewrite(Gather(MatMul(x, w), i, axis=ROWS), MatMul(Gather(x, i, axis=ROWS), w))


@rule("gather-before-columns")
def gather_before_columns(x: Activation, w: Matrices, i: IndexRow) -> Rewrite:
    """Columns of a product are products with columns of the right operand."""
    return Rewrite(Gather(MatMul(x, w), i, axis=LAST), MatMul(x, Gather(w, i, axis=LAST)))


@rule("gather-before-softmax-of-other-axis")
def gather_before_softmax_of_other_axis(x: Tensor, axis: AnyAxis, s: Axis, i: IndexRow) -> Rewrite:
    """A softmax along an axis before the one that is gathered."""
    return Rewrite(Gather(Softmax(x, axis=s), i, axis=axis), Softmax(Gather(x, i, axis=axis), axis=s), where=[s < axis])


@rule("gather-before-transpose")
def gather_before_transpose(x: Tensor, axis: AnyAxis, p: Permutation, i: IndexRow) -> Rewrite:
    """A gather of a transpose is one along the axis that the transpose brings there."""
    return Rewrite(
        Gather(Transpose(x, perm=p), i, axis=axis), Transpose(Gather(x, i, axis=p[axis] - p.length), perm=p), where=[]
    )


@rule("gather-before-join-of-2")
def gather_before_join_of_2(x: Tensor, y: Tensor, axis: AnyAxis, j: Axis, i: IndexRow) -> Rewrite:
    """A gather of two parts joined along another axis is one of each part."""
    return Rewrite(
        Gather(Concat(x, y, axis=j), i, axis=axis),
        Concat(Gather(x, i, axis=axis), Gather(y, i, axis=axis), axis=j),
        where=[axis != j],
    )


@rule("gather-before-join-of-3")
def gather_before_join_of_3(x: Tensor, y: Tensor, z: Tensor, axis: AnyAxis, j: Axis, i: IndexRow) -> Rewrite:
    """A gather of three parts joined along another axis is one of each part."""
    return Rewrite(
        Gather(Concat(x, y, z, axis=j), i, axis=axis),
        Concat(Gather(x, i, axis=axis), Gather(y, i, axis=axis), Gather(z, i, axis=axis), axis=j),
        where=[axis != j],
    )


@rules({"gather-before-reducesum-of-other-axes": ReduceSum, "gather-before-reducemean-of-other-axes": ReduceMean})
def gather_before_sum_of_other_axes(
    op: OperatorConstructor, x: Tensor, axis: AnyAxis, r: SomeAxes, i: IndexRow
) -> Rewrite:
    """Sums and means along other axes than the one that is gathered."""
    return Rewrite(
        Gather(op(x, axes=r, keepdims=1), i, axis=axis),
        op(Gather(x, i, axis=axis), axes=r, keepdims=1),
        where=[~r.contains(axis), r != [LAST], i.elements > 0],
    )


@rules({"gather-before-convolution": False, "gather-before-convolution-with-bias": True})
def gather_before_convolution(
    bias: bool, x: Image, f: Filters, b: FilterBias, window: GroupedWindow, i: IndexRow
) -> Rewrite:
    """A convolution is done of the images of a batch that are asked for."""
    biases = [b] if bias else []
    return Rewrite(
        Gather(Conv(x, f, *biases, **window), i, axis=IMAGES), Conv(Gather(x, i, axis=IMAGES), f, *biases, **window)
    )


@rules({"gather-before-filters": False, "gather-before-filters-with-bias": True})
def gather_before_filters(bias: bool, x: Image, f: AllChannels, b: FilterBias, window: Window, i: IndexRow) -> Rewrite:
    """A convolution is done by the filters whose channels are asked for."""
    biases, read = ([b], [Gather(b, i, axis=LAST)]) if bias else ([], [])
    return Rewrite(
        Gather(Conv(x, f, *biases, **window), i, axis=CHANNELS), Conv(x, Gather(f, i, axis=FILTERS), *read, **window)
    )


@rules({"gather-before-maxpool-of-images": IMAGES, "gather-before-maxpool-of-channels": CHANNELS})
def gather_before_maxpool(axis: int, x: Image, window: PoolWindow, i: IndexRow) -> Rewrite:
    """A pool sees one channel of one image at a time. ONNX Runtime does not pool no elements."""
    return Rewrite(
        Gather(MaxPool(x, **window, dilations=[1, 1]), i, axis=axis),
        MaxPool(Gather(x, i, axis=axis), **window, dilations=[1, 1]),
        where=[i.elements > 0],
    )


@rules({"gather-before-averagepool-of-images": IMAGES, "gather-before-averagepool-of-channels": CHANNELS})
def gather_before_averagepool(axis: int, x: Image, window: MeanWindow, i: IndexRow) -> Rewrite:
    """A pool of means sees one channel of one image at a time."""
    return Rewrite(
        Gather(AveragePool(x, **window), i, axis=axis),
        AveragePool(Gather(x, i, axis=axis), **window),
        where=[i.elements > 0],
    )


@rules({"gather-before-globalaveragepool-of-images": IMAGES, "gather-before-globalaveragepool-of-channels": CHANNELS})
def gather_before_globalaveragepool(axis: int, x: Image, i: IndexRow) -> Rewrite:
    """The mean of all points is one of each channel of each image."""
    return Rewrite(
        Gather(GlobalAveragePool(x), i, axis=axis), GlobalAveragePool(Gather(x, i, axis=axis)), where=[i.elements > 0]
    )
