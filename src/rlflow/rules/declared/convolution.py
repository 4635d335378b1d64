"""Convolutional networks: what stands around a convolution moves into its filters, and convolutions become one.

Filters and biases are constant wherever a rule computes with them: that work is done once, at export. An example is
`fold-batch-normalisation`. Sums and products of what is computed at run time never grow.
"""

from __future__ import annotations

from typing import Annotated

from rlflow.rules.dsl import (
    CONSTANT,
    Attribute,
    Choice,
    Integers,
    Operand,
    Partition,
    Rewrite,
    Shape,
    Tensor,
    false_control,
    ints,
    law,
    rule,
    rules,
)
from rlflow.rules.dsl import split as parts_of
from rlflow.rules.dsl.operators import (
    Add,
    AveragePool,
    BatchNormalization,
    Concat,
    Conv,
    GlobalAveragePool,
    MatMul,
    MaxPool,
    Mul,
    Pad,
    ReduceMean,
    Reshape,
    Split,
    Squeeze,
    Sub,
    Transpose,
    Unsqueeze,
)
from rlflow.rules.dsl.vocabulary import (
    CHANNELS,
    FILTERS,
    INPUTS,
    LAST,
    WHOLE,
    AllChannelsKernel,
    Bias,
    Constant,
    Dilations,
    Factor,
    FilterBias,
    Filters,
    GroupedWindow,
    Image,
    Kernel,
    Scalar,
    Strides,
    Window,
)

FAMILY = "convolution"

PerChannel = Annotated[Tensor, Shape("...a m 1 1"), CONSTANT]
OtherImage = Annotated[Tensor, Shape("n e h w")]
OtherKernel = Annotated[Tensor, Shape("m e p q"), CONSTANT]


@rules({"fold-batch-normalisation": False, "fold-batch-normalisation-with-bias": True})
def fold_batch_normalisation(
    bias: bool,
    x: Image,
    f: Kernel,
    b: Bias,
    scale: Bias,
    shift: Bias,
    mean: Bias,
    variance: Bias,
    window: GroupedWindow,
    e: Factor,
) -> Rewrite:
    """A normalisation after a convolution, done to its filters and its bias.

    A bias is normalised as it stands, filters without mean and shift: mean - mean is the zero that this takes.
    """

    def normalised(y: Tensor, shift: Tensor, mean: Tensor) -> Tensor:
        return BatchNormalization(y, scale, shift, mean, variance, epsilon=e)

    zero = Sub(mean, mean)
    filters = Transpose(normalised(Transpose(f, perm=[1, 0, 2, 3]), zero, zero), perm=[1, 0, 2, 3])
    row = Unsqueeze(b if bias else zero, axes=[0])
    moved = Squeeze(normalised(row, shift, mean), axes=[-2])

    return Rewrite(
        normalised(Conv(x, f, *([b] if bias else []), **window), shift, mean), Conv(x, filters, moved, **window)
    )


@false_control("normalisation-ignores-the-mean", of="fold-batch-normalisation")
def normalisation_ignores_the_mean(
    x: Image, f: AllChannelsKernel, s: Bias, t: Bias, u: Bias, v: Bias, window: Window, e: Factor
) -> Rewrite:
    """False: a normalisation takes the mean away, and a bias adds it."""
    return Rewrite(
        BatchNormalization(Conv(x, f, **window), s, t, u, v, epsilon=e),
        BatchNormalization(Conv(x, f, u, **window), s, t, u, v, epsilon=e),
    )


@rules({"addend-to-bias": False, "addend-to-bias-with-bias": True})
def addend_to_bias(bias: bool, x: Image, f: Kernel, b: Bias, a: PerChannel, window: GroupedWindow) -> Rewrite:
    """A number that is added to each channel of a convolution is its bias, or joins the bias that it has."""
    row = Reshape(a, shape=[-1])
    return Rewrite(
        Add(Conv(x, f, *([b] if bias else []), **window), a), Conv(x, f, Add(b, row) if bias else row, **window)
    )


def _scaled(x: Tensor, f: Tensor, biases: list[Tensor], s: Tensor, window: GroupedWindow) -> tuple[Tensor, Tensor]:
    """A factor behind a convolution, and inside it."""
    scaled = [Mul(b, Reshape(s, shape=[-1])) for b in biases]
    return (
        Mul(Conv(x, f, *biases, **window), s),
        Conv(x, Mul(f, Reshape(s, shape=[-1, 1, 1, 1])), *scaled, **window),
    )


@rules({"scale-all-into-filters": False, "scale-all-into-filters-with-bias": True})
def scale_all_into_filters(bias: bool, x: Image, f: Kernel, b: Bias, s: Constant, window: GroupedWindow) -> Rewrite:
    """A factor of all channels of a convolution moves into its filters and its bias."""
    return Rewrite(*_scaled(x, f, [b] if bias else [], s, window), where=[s.elements == 1])


@rules({"scale-channels-into-filters": False, "scale-channels-into-filters-with-bias": True})
def scale_channels_into_filters(
    bias: bool, x: Image, f: Kernel, b: Bias, s: PerChannel, window: GroupedWindow
) -> Rewrite:
    """A factor of each channel of a convolution moves into its filters and its bias."""
    return Rewrite(*_scaled(x, f, [b] if bias else [], s, window))


@rules(
    {
        "merge-2-convolutions": (2, False),
        "merge-2-convolutions-with-bias": (2, True),
        "merge-3-convolutions": (3, False),
        "merge-3-convolutions-with-bias": (3, True),
    }
)
def merge_convolutions(
    case: tuple[int, bool],
    x: Image,
    f0: Annotated[Tensor, Shape("m0 c p q"), CONSTANT],
    f1: Annotated[Tensor, Shape("m1 c p q"), CONSTANT],
    f2: Annotated[Tensor, Shape("m2 c p q"), CONSTANT],
    b0: Annotated[Tensor, Shape("m0"), CONSTANT],
    b1: Annotated[Tensor, Shape("m1"), CONSTANT],
    b2: Annotated[Tensor, Shape("m2"), CONSTANT],
    window: Window,
) -> Rewrite:
    """Convolutions of one image, as one with more filters (TASO, section 2; the 1x1 branches of an Inception block)."""
    count, bias = case
    filters, biases = [f0, f1, f2][:count], [b0, b1, b2][: count if bias else 0]

    together = Concat(*filters, axis=FILTERS)
    biases_together = [Concat(*biases, axis=LAST)] if bias else []
    merged = Conv(x, together, *biases_together, **window)

    return Rewrite(
        [Conv(x, f, *biases[i : i + 1], **window) for i, f in enumerate(filters)],
        parts_of(merged, CHANNELS, *(f.dim(0) for f in filters)),
    )


@false_control("grouped-convolutions-merge", of="merge-2-convolutions")
def grouped_convolutions_merge(
    x: Annotated[Tensor, Shape("n 4 h w")],
    f: Annotated[Tensor, Shape("2 2 p q"), CONSTANT],
    g: Annotated[Tensor, Shape("2 2 p q"), CONSTANT],
    window: Window,
) -> Rewrite:
    """False: the first half of all merged filters reads the first group alone."""
    grouped = {**window, "group": 2}
    merged = Split(Conv(x, Concat(f, g, axis=FILTERS), **grouped), axis=CHANNELS, split=[2, 2])
    return Rewrite([Conv(x, f, **grouped), Conv(x, g, **grouped)], [merged[0], merged[1]])


@false_control("convolutions-of-different-strides-merge", of="merge-2-convolutions")
def convolutions_of_different_strides_merge(
    x: Annotated[Tensor, Shape("n 2 4 4")],
    f: Annotated[Tensor, Shape("2 2 2 2"), CONSTANT],
    g: Annotated[Tensor, Shape("2 2 2 2"), CONSTANT],
) -> Rewrite:
    """False: only the types agree, because pads make up for the strides."""
    strided = {"strides": [2, 2], "pads": [1, 1, 1, 1], "dilations": [1, 1]}
    merged = Split(Conv(x, Concat(f, g, axis=FILTERS), **WHOLE), axis=CHANNELS, split=[2, 2])
    return Rewrite([Conv(x, f, **WHOLE), Conv(x, g, **strided)], [merged[0], merged[1]])


_HALVES = {"count": 2, "sizes": Annotated[Attribute, Partition("f", axis=0, parts=2)]}
_THIRDS = {"count": 3, "sizes": Annotated[Attribute, Partition("f", axis=0, parts=3)]}


@rules(
    {
        "split-convolution-2": {**_HALVES, "bias": False},
        "split-convolution-2-with-bias": {**_HALVES, "bias": True},
        "split-convolution-3": {**_THIRDS, "bias": False},
        "split-convolution-3-with-bias": {**_THIRDS, "bias": True},
    }
)
def split_convolution(
    count: int, bias: bool, x: Image, f: AllChannelsKernel, b: Bias, window: Window, sizes: Attribute
) -> Rewrite:
    """A convolution whose channels are split right away, as a convolution for each part."""
    biases = [b] if bias else []
    whole = Split(Conv(x, f, *biases, **window), axis=CHANNELS, split=sizes)
    operands = [Split(f, axis=FILTERS, split=sizes), *(Split(b, axis=LAST, split=sizes) for b in biases)]
    return Rewrite(
        [whole[i] for i in range(count)],
        [Conv(x, *(operand[i] for operand in operands), **window) for i in range(count)],
        where=[sizes.length == count],
    )


_BIASES = ({"bias": False}, {"bias": True})


@law("sum-of-convolutions-to-one", "sum-of-convolutions-to-one-with-bias", over=_BIASES)
def sum_of_convolutions_to_one(
    bias: bool, x: Image, y: OtherImage, f: AllChannelsKernel, g: OtherKernel, b: Bias, d: Bias, window: Window
) -> Rewrite:
    """A sum of convolutions, as one over both images end to end."""
    joined = [Concat(x, y, axis=CHANNELS), Concat(f, g, axis=INPUTS)]
    if bias:
        return Rewrite(Add(Conv(x, f, b, **window), Conv(y, g, d, **window)), Conv(*joined, Add(b, d), **window))
    return Rewrite(Add(Conv(x, f, **window), Conv(y, g, **window)), Conv(*joined, **window))


@law("sum-of-filters", "sum-of-filters-with-bias", over=_BIASES)
def sum_of_filters(bias: bool, x: Image, f: Kernel, g: Kernel, b: Bias, d: Bias, window: GroupedWindow) -> Rewrite:
    """A sum of convolutions of one image, by the sum of the filters (the branches of RepVGG, Ding et al., 2021)."""
    if bias:
        return Rewrite(Add(Conv(x, f, b, **window), Conv(x, g, d, **window)), Conv(x, Add(f, g), Add(b, d), **window))
    return Rewrite(Add(Conv(x, f, **window), Conv(x, g, **window)), Conv(x, Add(f, g), **window))


@false_control("sums-of-images-and-filters", of="sum-of-filters")
def sums_of_images_and_filters(
    x: Image, y: Image, f: AllChannelsKernel, g: AllChannelsKernel, window: Window
) -> Rewrite:
    """False: each image would be read by the filters of the other, too."""
    return Rewrite(Add(Conv(x, f, **window), Conv(y, g, **window)), Conv(Add(x, y), Add(f, g), **window))


@rule("scale-out-of-image", "scale-into-image")
def scale_out_of_image(x: Image, f: Filters, s: Scalar, window: GroupedWindow) -> Rewrite:
    """A factor of the whole image, as one of the outcome."""
    return Rewrite(Conv(Mul(x, s), f, **window), Mul(Conv(x, f, **window), s))


@rule("scale-out-of-filters", "scale-into-filters")
def scale_out_of_filters(x: Image, f: Filters, s: Scalar, window: GroupedWindow) -> Rewrite:
    """A factor of all filters, as one of the outcome."""
    return Rewrite(Conv(x, Mul(f, s), **window), Mul(Conv(x, f, **window), s))


@rule("convolution-of-filter-sum")
def convolution_of_filter_sum(x: Image, f: Kernel, g: Kernel, window: GroupedWindow) -> Rewrite:
    """A convolution by a sum of filters, as two convolutions: `sum-of-filters` backwards."""
    return Rewrite(Conv(x, Add(f, g), **window), Add(Conv(x, f, **window), Conv(x, g, **window)))


@rules({"points-to-product": False, "points-to-product-with-bias": True})
def points_to_product(
    bias: bool, x: Image, f: Annotated[Tensor, Shape("m c 1 1"), CONSTANT], b: Bias, d: Dilations
) -> Rewrite:
    """A convolution of single points, as a product of matrices."""
    window = {**WHOLE, "dilations": d}
    columns = Reshape(x, shape=ints(0, x.dim(1), x.dim(2) * x.dim(3)))
    product = MatMul(Reshape(f, shape=[f.dim(0), f.dim(1)]), columns)
    image = Reshape(product, shape=[0, f.dim(0), x.dim(2), x.dim(3)])

    if bias:
        return Rewrite(Conv(x, f, b, **window), Add(image, Reshape(b, shape=[-1, 1, 1])))
    return Rewrite(Conv(x, f, **window), image)


_POINTS = {"f": Annotated[Tensor, Shape("m k 1 1"), CONSTANT], "rows": 1, "columns": 1}
_ROWS = {"f": Annotated[Tensor, Shape("m k 1 3"), CONSTANT], "rows": 1, "columns": 0}
_COLUMNS = {"f": Annotated[Tensor, Shape("m k 3 1"), CONSTANT], "rows": 0, "columns": 1}


@rules(
    {
        "enlarge-1x1-filters": {**_POINTS, "bias": False},
        "enlarge-1x1-filters-with-bias": {**_POINTS, "bias": True},
        "enlarge-1x3-filters": {**_ROWS, "bias": False},
        "enlarge-1x3-filters-with-bias": {**_ROWS, "bias": True},
        "enlarge-3x1-filters": {**_COLUMNS, "bias": False},
        "enlarge-3x1-filters-with-bias": {**_COLUMNS, "bias": True},
    },
    opset=11,
)
def enlarge_filters(
    rows: int, columns: int, bias: bool, x: Image, f: Tensor, b: Bias, window: GroupedWindow
) -> Rewrite:
    """Zeros around filters, and as many more around the image: filters that merge must be of one size (TASO, 2)."""
    biases, pads = [b] if bias else [], window["pads"]
    more = ints(*(pads[i] + zeros for i, zeros in enumerate((rows, columns, rows, columns))))
    around = Pad(f, pads=[0, 0, rows, columns, 0, 0, rows, columns])
    dense = {**window, "dilations": [1, 1]}
    return Rewrite(Conv(x, f, *biases, **dense), Conv(x, around, *biases, **{**dense, "pads": more}))


@false_control("filters-grow-off-centre", of="enlarge-1x1-filters")
def filters_grow_off_centre(
    x: Image,
    f: Annotated[Tensor, Shape("m c 1 1"), CONSTANT],
    s: Strides,
    p: Annotated[Attribute, Integers(0, 2, count=4)],
    d: Annotated[Attribute, Choice([1, 1])],
) -> Rewrite:
    """False: filters with zeros on one side look at other points."""
    window = {"strides": s, "dilations": d}
    more = ints(*(p[i] + 1 for i in range(4)))
    return Rewrite(Conv(x, f, pads=p, **window), Conv(x, Pad(f, pads=[0, 0, 2, 2, 0, 0, 0, 0]), pads=more, **window))


@rules({"sum-of-3x3-and-1x1-filters": False, "sum-of-3x3-and-1x1-filters-with-bias": True}, opset=11)
def sum_of_two_sizes(
    bias: bool,
    x: Image,
    f: Annotated[Tensor, Shape("m k 3 3"), CONSTANT],
    g: Annotated[Tensor, Shape("m k 1 1"), CONSTANT],
    b: Bias,
    d: Bias,
    window: GroupedWindow,
) -> Rewrite:
    """The sum of two that keep the image's size, in one step: to enlarge first costs more than a search accepts."""
    wide = {**window, "dilations": [1, 1], "pads": [1, 1, 1, 1]}
    narrow = {**wide, "pads": [0, 0, 0, 0]}
    both = Add(f, Pad(g, pads=[0, 0, 1, 1, 0, 0, 1, 1]))

    if bias:
        return Rewrite(Add(Conv(x, f, b, **wide), Conv(x, g, d, **narrow)), Conv(x, both, Add(b, d), **wide))
    return Rewrite(Add(Conv(x, f, **wide), Conv(x, g, **narrow)), Conv(x, both, **wide))


@rules({"halve-groups": False, "halve-groups-with-bias": True}, opset=11)
def halve_groups(bias: bool, x: Image, f: Kernel, b: Bias, window: GroupedWindow) -> Rewrite:
    """Two groups at a time become one: filters of the first read zeros of the second's channels, and conversely."""
    groups = window["group"]
    half, each = groups / 2, f.dim(0) / groups
    taps = f.dim(1) * f.dim(2) * f.dim(3)

    pairs = Split(Reshape(f, shape=[half, 2, each, taps]), axis=-3, split=[1, 1])
    first = Pad(pairs[0], pads=ints(0, 0, 0, 0, 0, 0, 0, taps))
    second = Pad(pairs[1], pads=ints(0, 0, 0, taps, 0, 0, 0, 0))
    blocks = Reshape(Concat(first, second, axis=-3), shape=[f.dim(0), 2 * f.dim(1), f.dim(2), f.dim(3)])

    biases = [b] if bias else []
    return Rewrite(
        Conv(x, f, *biases, **window),
        Conv(x, blocks, *biases, **{**window, "group": half}),
        where=[2 * half == groups],
    )


@rules({"pad-into-convolution": False, "pad-into-convolution-with-bias": True})
def pad_into_convolution(
    bias: bool,
    x: Image,
    f: Filters,
    b: FilterBias,
    window: GroupedWindow,
    q: Annotated[Attribute, Integers(0, 1, count=8)],
) -> Rewrite:
    """Zeros around the image, as pads of the window."""
    pads = window["pads"]
    both = ints(*(pads[i] + q[j] for i, j in enumerate((2, 3, 6, 7))))
    biases = [b] if bias else []
    return Rewrite(
        Conv(Pad(x, pads=q), f, *biases, **window),
        Conv(x, f, *biases, **{**window, "pads": both}),
        where=[q[i] == 0 for i in (0, 1, 4, 5)],
    )


@false_control("ones-around-are-zeros-around", of="pad-into-convolution")
def ones_around_are_zeros_around(x: Image, f: AllChannelsKernel) -> Rewrite:
    """False: a window pads by zeros, and these are ones."""
    ones = Pad(x, pads=[0, 0, 1, 1, 0, 0, 1, 1], constant_value=1.0)
    return Rewrite(Conv(ones, f, **WHOLE), Conv(x, f, **{**WHOLE, "pads": [1, 1, 1, 1]}))


def _mean_of_points(x: Tensor) -> Tensor:
    return ReduceMean(x, axes=[-2, -1], keepdims=1)


@rule("global-average-to-mean")
def global_average_to_mean(x: Image) -> Rewrite:
    """The mean of all points, by its two names."""
    return Rewrite(GlobalAveragePool(x), _mean_of_points(x))


@rule("mean-to-global-average")
def mean_to_global_average(x: Image) -> Rewrite:
    """The same backwards. ONNX Runtime has a mean of no points, and no pool of them."""
    return Rewrite(_mean_of_points(x), GlobalAveragePool(x), where=[x.dim(axis) >= 1 for axis in (1, 2, 3)])


@false_control("convolutions-commute")
def convolutions_commute(
    x: Image,
    f: Annotated[Tensor, Shape("c c p p"), CONSTANT],
    g: Annotated[Tensor, Shape("c c p p"), CONSTANT],
) -> Rewrite:
    """False: convolutions commute only where there is one channel."""
    return Rewrite(Conv(Conv(x, f, **WHOLE), g, **WHOLE), Conv(Conv(x, g, **WHOLE), f, **WHOLE))


def _largest(x: Operand, s: Attribute) -> Tensor:
    return MaxPool(x, kernel_shape=[2, 2], strides=s, pads=[1, 0, 1, 1], dilations=[1, 1])


@false_control("largest-of-a-sum")
def largest_of_a_sum(x: Image, y: Image, s: Strides) -> Rewrite:
    """False: the largest elements of two images may lie at different places."""
    return Rewrite(_largest(Add(x, y), s), Add(_largest(x, s), _largest(y, s)))


@false_control("padding-does-not-count")
def padding_does_not_count(x: Image, s: Strides) -> Rewrite:
    """False: a mean that counts zeros around the image is another one wherever its window meets them."""
    window = {"kernel_shape": [2, 2], "strides": s, "pads": [1, 0, 1, 1]}
    return Rewrite(AveragePool(x, **window, count_include_pad=1), AveragePool(x, **window))
