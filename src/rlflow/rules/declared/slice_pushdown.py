"""Slices before what works within them: functions of elements, and products, sums and norms of other axes.

Of a layer whose result is read in part, that part alone is computed: a head that reads one token of a transformer
leaves one token for its last layers to do. An example is `slice-before-softmax`. All rules lead towards the inputs.
"""

from __future__ import annotations

from typing import Annotated

from rlflow.rules.dsl import (
    Attribute,
    Attributes,
    Choice,
    Condition,
    OperatorConstructor,
    Rewrite,
    Shape,
    Tensor,
    Value,
    false_control,
    reads_some,
    rule,
    rules,
    tensor,
)
from rlflow.rules.dsl.operators import (
    Add,
    Clip,
    Div,
    Erf,
    Exp,
    Gemm,
    LayerNormalization,
    Log,
    MatMul,
    Mul,
    Neg,
    Pow,
    Reciprocal,
    ReduceMean,
    ReduceSum,
    Relu,
    Reshape,
    Sigmoid,
    Slice,
    Softmax,
    Sqrt,
    Sub,
    Sum,
    Tanh,
)
from rlflow.rules.dsl.vocabulary import BACKWARDS, LAST, ROWS, AnySlice, Axis, Bounds, Extent, Factor, Matrix, Row

FAMILY = "reading"

_X, _W = tensor("x"), tensor("w")
_BATCH, _TIME, _WIDTH, _COLUMNS = _X.dim(0), _X.dim(1), _X.dim(2), _W.dim(1)
FLAT = ([_BATCH * _TIME, _WIDTH], [-1, _WIDTH])
FULL = ([_BATCH, _TIME, _COLUMNS], [-1, _TIME, _COLUMNS])
"""Shapes of all rows of a batch, and of the batch of all rows that are computed."""

Tokens = Annotated[Tensor, Shape("b t k")]
FlatShape = Annotated[Attribute, Choice(*FLAT)]
FullShape = Annotated[Attribute, Choice(*FULL)]


def along(part: Attributes) -> Value:
    """The axis of a slice that has but one."""
    return part["axes"][0]


def is_single(part: Attributes) -> Condition:
    """The slice is one along one axis."""
    return part["axes"].length == 1


def reads_some_of(x: Tensor, part: Attributes) -> Condition:
    """The slice leaves elements, wherever x has some."""
    return reads_some(x.dim(along(part)), part["starts"][0], part["ends"][0], part["steps"][0])


@rules(
    {
        "slice-before-relu": Relu,
        "slice-before-neg": Neg,
        "slice-before-reciprocal": Reciprocal,
        "slice-before-exp": Exp,
        "slice-before-erf": Erf,
        "slice-before-tanh": Tanh,
        "slice-before-sqrt": Sqrt,
        "slice-before-log": Log,
        "slice-before-sigmoid": Sigmoid,
    }
)
def slice_before_function(f: OperatorConstructor, x: Tensor, part: AnySlice) -> Rewrite:
    """A function of elements is computed only of those that are sliced."""
    return Rewrite(Slice(f(x), **part), f(Slice(x, **part)), where=[is_single(part)])


@rule("slice-before-clip")
def slice_before_clip(x: Tensor, part: AnySlice, bounds: Bounds) -> Rewrite:
    """A Clip is computed only of the elements that are sliced."""
    return Rewrite(Slice(Clip(x, **bounds), **part), Clip(Slice(x, **part), **bounds), where=[is_single(part)])


@rules({"slice-before-square": 2.0, "slice-before-cube": 3.0, "slice-before-root": 0.5})
def slice_before_power(exponent: float, x: Tensor, part: AnySlice) -> Rewrite:
    """A power is computed only of the elements that are sliced."""
    return Rewrite(
        Slice(Pow(x, exponent=exponent), **part), Pow(Slice(x, **part), exponent=exponent), where=[is_single(part)]
    )


@rules(
    {
        "slice-before-add-of-two": Add,
        "slice-before-mul-of-two": Mul,
        "slice-before-sub-of-two": Sub,
        "slice-before-div-of-two": Div,
    }
)
def slice_before_two(op: OperatorConstructor, x: Tensor, z: Tensor, part: AnySlice) -> Rewrite:
    """Both operands are sliced where both have the axis."""
    return Rewrite(
        Slice(op(x, z), **part),
        op(Slice(x, **part), Slice(z, **part)),
        where=[is_single(part), x.dim(along(part)) == z.dim(along(part))],
    )


@rules(
    {
        "slice-before-add-of-one": Add,
        "slice-before-mul-of-one": Mul,
        "slice-before-sub-of-one": Sub,
        "slice-before-div-of-one": Div,
    }
)
def slice_before_left(op: OperatorConstructor, x: Tensor, z: Tensor, part: AnySlice) -> Rewrite:
    """The right operand stays whole where it does not reach to the axis."""
    return Rewrite(Slice(op(x, z), **part), op(Slice(x, **part), z), where=[is_single(part), z.rank < -along(part)])


@rules(
    {
        "slice-before-sub-of-one-from-right": Sub,
        "slice-before-div-of-one-from-right": Div,
    }
)
def slice_before_right(op: OperatorConstructor, x: Tensor, z: Tensor, part: AnySlice) -> Rewrite:
    """The left operand stays whole where it does not reach to the axis."""
    return Rewrite(Slice(op(z, x), **part), op(z, Slice(x, **part)), where=[is_single(part), z.rank < -along(part)])


@rule("slice-before-sum-of-two")
def slice_before_sum_of_two(x: Tensor, y: Tensor, part: AnySlice) -> Rewrite:
    """A Sum of two operands, as `bias-add-to-sum` and its like make them."""
    return Rewrite(
        Slice(Sum(x, y), **part),
        Sum(Slice(x, **part), Slice(y, **part)),
        where=[is_single(part), x.dim(along(part)) == y.dim(along(part))],
    )


@rule("slice-before-sum-of-one-and-bias")
def slice_before_sum_of_one_and_bias(x: Tensor, y: Tensor, part: AnySlice) -> Rewrite:
    """A Sum with a bias, which stays whole."""
    return Rewrite(Slice(Sum(x, y), **part), Sum(Slice(x, **part), y), where=[is_single(part), y.rank < -along(part)])


@rule("slice-before-sum-of-three")
def slice_before_sum_of_three(x: Tensor, y: Tensor, z: Tensor, part: AnySlice) -> Rewrite:
    """A Sum of three operands that all have the axis."""
    return Rewrite(
        Slice(Sum(x, y, z), **part),
        Sum(Slice(x, **part), Slice(y, **part), Slice(z, **part)),
        where=[is_single(part), x.dim(along(part)) == y.dim(along(part)), x.dim(along(part)) == z.dim(along(part))],
    )


@rule("slice-before-sum-of-two-and-bias")
def slice_before_sum_of_two_and_bias(x: Tensor, y: Tensor, z: Tensor, part: AnySlice) -> Rewrite:
    """A Sum of two operands and a bias, which stays whole."""
    return Rewrite(
        Slice(Sum(x, y, z), **part),
        Sum(Slice(x, **part), y, Slice(z, **part)),
        where=[is_single(part), y.rank < -along(part), x.dim(along(part)) == z.dim(along(part))],
    )


@rule("slice-before-reshaped-gemm")
def slice_before_reshaped_gemm(x: Tokens, w: Matrix, c: Row, part: AnySlice, q: FlatShape, r: FullShape) -> Rewrite:
    """A product of all rows as one Gemm (`linear-to-gemm`) is, of some, the product that it was."""
    return Rewrite(
        Slice(Reshape(Gemm(Reshape(x, shape=q), w, c), shape=r), **part),
        Add(MatMul(Slice(x, **part), w), c),
        where=[is_single(part), along(part) < LAST, q.is_in(FLAT), r.is_in(FULL)],
    )


@rule("slice-before-product")
def slice_before_product(x: Tensor, w: Matrix, part: AnySlice) -> Rewrite:
    """The left operand of a product is sliced along other axes than those of the matrices."""
    return Rewrite(
        Slice(MatMul(x, w), **part), MatMul(Slice(x, **part), w), where=[is_single(part), along(part) < LAST]
    )


@rule("slice-before-parallel-products")
def slice_before_parallel_products(x: Tensor, w: Tensor, part: AnySlice) -> Rewrite:
    """Only those of many products are computed that are asked for."""
    return Rewrite(
        Slice(MatMul(x, w), **part),
        MatMul(Slice(x, **part), Slice(w, **part)),
        where=[is_single(part), along(part) < ROWS, x.dim(along(part)) == w.dim(along(part))],
    )


@rule("slice-before-softmax")
def slice_before_softmax(x: Tensor, part: AnySlice, s: Axis) -> Rewrite:
    """A softmax along an axis behind the one that is sliced."""
    return Rewrite(
        Slice(Softmax(x, axis=s), **part), Softmax(Slice(x, **part), axis=s), where=[is_single(part), along(part) < s]
    )


@rule("slice-before-layer-norm")
def slice_before_layer_norm(x: Tensor, g: Row, part: AnySlice, n: Factor) -> Rewrite:
    """A normalisation of rows, where other axes are sliced."""
    return Rewrite(
        Slice(LayerNormalization(x, g, epsilon=n), **part),
        LayerNormalization(Slice(x, **part), g, epsilon=n),
        where=[is_single(part), along(part) < LAST],
    )


@rule("slice-before-layer-norm-with-shift")
def slice_before_layer_norm_with_shift(x: Tensor, g: Row, c: Row, part: AnySlice, n: Factor) -> Rewrite:
    """A normalisation of rows with a shift, where other axes are sliced."""
    return Rewrite(
        Slice(LayerNormalization(x, g, c, epsilon=n), **part),
        LayerNormalization(Slice(x, **part), g, c, epsilon=n),
        where=[is_single(part), along(part) < LAST],
    )


@rules({"slice-before-reducesum-of-rows": ReduceSum, "slice-before-reducemean-of-rows": ReduceMean})
def slice_before_sum_of_rows(op: OperatorConstructor, x: Tensor, part: AnySlice) -> Rewrite:
    """Sums and means of rows, where other axes are sliced. ONNX Runtime does not reduce no elements."""
    return Rewrite(
        Slice(op(x, axes=[LAST], keepdims=1), **part),
        op(Slice(x, **part), axes=[LAST], keepdims=1),
        where=[is_single(part), along(part) < LAST, reads_some_of(x, part)],
    )


@false_control("softmax-of-some-is-some-of-softmax", of="slice-before-softmax")
def softmax_of_some_is_some_of_softmax(x: Tensor, extent: Extent) -> Rewrite:
    """False: a softmax along the axis that is sliced sums all of it."""
    return Rewrite(Slice(Softmax(x), axes=[LAST], **extent), Softmax(Slice(x, axes=[LAST], **extent)))


@false_control("layer-norm-forgets-what-is-turned", of="slice-before-layer-norm")
def layer_norm_forgets_what_is_turned(x: Annotated[Tensor, Shape("m n")], g: Row) -> Rewrite:
    """False: the scale would have to be turned, too."""
    return Rewrite(
        Slice(LayerNormalization(x, g), axes=[LAST], **BACKWARDS),
        LayerNormalization(Slice(x, axes=[LAST], **BACKWARDS), g),
    )
