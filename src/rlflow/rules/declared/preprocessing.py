"""Models that normalise their own inputs: the factors and addends of pixels or columns move into the first weights.

    Conv((x - mean) / deviation, f, b)      =>      Conv(x, f / deviation, b - sum(f mean / deviation))

A quotient is a product by then (`divide-to-multiply`), so that each step takes away one operation over the whole input.
Factors, addends and weights are constant: what is computed of them is computed once, at export.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from rlflow.rules.dsl import CONSTANT, Rewrite, Shape, Tensor, false_control, rule, rules
from rlflow.rules.dsl.operators import Add, Conv, Gemm, MatMul, Mul, ReduceSum, Reshape, Sub
from rlflow.rules.dsl.vocabulary import (
    CHANNELS,
    LAST,
    Activation,
    AllChannelsKernel,
    Bias,
    Constant,
    GemmFactors,
    GemmRows,
    GroupedWindow,
    Image,
    InsideWindow,
    Kernel,
    TransposedWeight,
    Weight,
    WeightRow,
    Window,
)

FAMILY = "preprocessing"

Shift = Callable[..., Tensor]
ImageChannels = Annotated[Tensor, Shape("...a c 1 1"), CONSTANT]
Columns = Annotated[Tensor, Shape("...a k"), CONSTANT]


def _of_inputs(f: Tensor, s: Tensor) -> Tensor:
    """Filters times a factor of each channel that they read, or of all."""
    return Mul(f, Reshape(s, shape=[-1, 1, 1]))


@rules({"scale-image-into-filters": False, "scale-image-into-filters-with-bias": True})
def scale_image_into_filters(bias: bool, x: Image, f: Kernel, b: Bias, s: Constant, window: GroupedWindow) -> Rewrite:
    """A factor of an image moves into the filters."""
    biases = [b] if bias else []
    return Rewrite(
        Conv(Mul(x, s), f, *biases, **window), Conv(x, _of_inputs(f, s), *biases, **window), where=[s.elements == 1]
    )


@rules({"scale-channels-of-image-into-filters": False, "scale-channels-of-image-into-filters-with-bias": True})
def scale_channels_of_image_into_filters(
    bias: bool, x: Image, f: AllChannelsKernel, b: Bias, s: ImageChannels, window: Window
) -> Rewrite:
    """A factor of each channel of an image moves into the filters."""
    biases = [b] if bias else []
    return Rewrite(
        Conv(Mul(x, s), f, *biases, **window),
        Conv(x, _of_inputs(f, s), *biases, **window),
        where=[s.elements == s.dim(CHANNELS)],
    )


def _shifted(
    case: tuple[Shift, bool], x: Tensor, f: Tensor, b: Tensor, a: Tensor, window: InsideWindow
) -> tuple[Tensor, Tensor]:
    """An addend before a convolution without padding, whose zeros nothing is added to, and in its bias."""
    shift, bias = case
    seen = ReduceSum(_of_inputs(f, a), axes=[-3, -2, -1], keepdims=0)
    return (
        Conv(shift(x, a), f, *([b] if bias else []), pads=[0, 0, 0, 0], **window),
        Conv(x, f, shift(b if bias else Sub(seen, seen), seen), pads=[0, 0, 0, 0], **window),
    )


@rules(
    {
        "addend-of-image-to-bias": (Add, False),
        "addend-of-image-to-bias-with-bias": (Add, True),
        "mean-of-image-to-bias": (Sub, False),
        "mean-of-image-to-bias-with-bias": (Sub, True),
    }
)
def addend_of_image_to_bias(
    case: tuple[Shift, bool], x: Image, f: AllChannelsKernel, b: Bias, a: Constant, window: InsideWindow
) -> Rewrite:
    """An addend of an image moves into the bias."""
    return Rewrite(*_shifted(case, x, f, b, a, window), where=[a.elements == 1])


@rules(
    {
        "addend-of-image-channels-to-bias": (Add, False),
        "addend-of-image-channels-to-bias-with-bias": (Add, True),
        "mean-of-image-channels-to-bias": (Sub, False),
        "mean-of-image-channels-to-bias-with-bias": (Sub, True),
    }
)
def addend_of_image_channels_to_bias(
    case: tuple[Shift, bool], x: Image, f: AllChannelsKernel, b: Bias, a: ImageChannels, window: InsideWindow
) -> Rewrite:
    """An addend of each channel of an image moves into the bias."""
    return Rewrite(*_shifted(case, x, f, b, a, window), where=[a.elements == a.dim(CHANNELS)])


@false_control("addend-of-a-padded-image", of="addend-of-image-channels-to-bias")
def addend_of_a_padded_image(x: Image, f: AllChannelsKernel, a: ImageChannels, window: Window) -> Rewrite:
    """False: nothing is added to the zeros of a padding."""
    seen = ReduceSum(_of_inputs(f, a), axes=[-3, -2, -1], keepdims=0)
    return Rewrite(Conv(Add(x, a), f, **window), Conv(x, f, seen, **window), where=[a.elements == a.dim(CHANNELS)])


@rule("scale-inputs-into-weight")
def scale_inputs_into_weight(x: Activation, w: Weight, s: Columns) -> Rewrite:
    """A factor of each input moves into the weight that it is multiplied by."""
    return Rewrite(
        MatMul(Mul(x, s), w), MatMul(x, Mul(w, Reshape(s, shape=[-1, 1]))), where=[s.elements == s.dim(LAST)]
    )


@rules({"addend-of-inputs-past-product": Add, "mean-of-inputs-past-product": Sub})
def addend_of_inputs_past_product(shift: Shift, x: Activation, w: Weight, a: Columns) -> Rewrite:
    """An addend of each input, as one of the product, where a bias takes it in."""
    moved = MatMul(Reshape(a, shape=[-1]), w)
    return Rewrite(MatMul(shift(x, a), w), shift(MatMul(x, w), moved), where=[a.elements == a.dim(LAST)])


@rule("scale-inputs-into-gemm")
def scale_inputs_into_gemm(x: GemmRows, w: Weight, c: WeightRow, s: Columns, factors: GemmFactors) -> Rewrite:
    """A factor of each input moves into the weight of a Gemm."""
    return Rewrite(
        Gemm(Mul(x, s), w, c, **factors),
        Gemm(x, Mul(w, Reshape(s, shape=[-1, 1])), c, **factors),
        where=[s.elements == s.dim(LAST)],
    )


@rule("scale-inputs-into-transposed-gemm")
def scale_inputs_into_transposed_gemm(
    x: GemmRows, w: TransposedWeight, c: WeightRow, s: Columns, factors: GemmFactors
) -> Rewrite:
    """A factor of each input moves into the weight of a Gemm that turns it over, as frameworks write them."""
    return Rewrite(
        Gemm(Mul(x, s), w, c, transB=1, **factors),
        Gemm(x, Mul(w, Reshape(s, shape=[-1])), c, transB=1, **factors),
        where=[s.elements == s.dim(LAST)],
    )


@rules({"addend-of-inputs-to-bias": Add, "mean-of-inputs-to-bias": Sub})
def addend_of_inputs_to_bias(shift: Shift, x: GemmRows, w: Weight, c: WeightRow, a: Columns) -> Rewrite:
    """An addend of each input moves into the bias of a Gemm."""
    moved = MatMul(Reshape(a, shape=[-1]), w)
    return Rewrite(Gemm(shift(x, a), w, c), Gemm(x, w, shift(c, moved)), where=[a.elements == a.dim(LAST)])


@rules({"addend-of-inputs-to-transposed-bias": Add, "mean-of-inputs-to-transposed-bias": Sub})
def addend_of_inputs_to_transposed_bias(
    shift: Shift, x: GemmRows, w: TransposedWeight, c: WeightRow, a: Columns
) -> Rewrite:
    """An addend of each input moves into the bias of a Gemm that turns its weight over."""
    moved = MatMul(w, Reshape(a, shape=[-1]))
    return Rewrite(
        Gemm(shift(x, a), w, c, transB=1), Gemm(x, w, shift(c, moved), transB=1), where=[a.elements == a.dim(LAST)]
    )


@false_control("factor-of-rows-into-weight", of="scale-inputs-into-weight")
def factor_of_rows_into_weight(
    x: Annotated[Tensor, Shape("k k")], w: Annotated[Tensor, Shape("k k"), CONSTANT], s: Columns
) -> Rewrite:
    """False: columns of the weight are not those of the input."""
    return Rewrite(MatMul(Mul(x, s), w), MatMul(x, Mul(w, s)), where=[s.elements == s.dim(LAST)])
