"""Gathers before what works within them, as in `slice_pushdown`: what is selected is computed alone.

Indices may be of any rank and take the place of the axis, so that the axes before it must not matter: all of these
rules speak of axes counted from the end that lie behind it, or of none. An example is `gather-before-softmax`.
"""

from __future__ import annotations

from typing import Annotated

from rlflow.rules.declared.slice_pushdown import FLAT, FULL, FlatShape, FullShape, Tokens
from rlflow.rules.dsl import OperatorConstructor, Rewrite, Shape, Tensor, false_control, rule, rules
from rlflow.rules.dsl.operators import (
    Add,
    Clip,
    Div,
    Erf,
    Exp,
    Gather,
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
    Softmax,
    Sqrt,
    Sub,
    Sum,
    Tanh,
)
from rlflow.rules.dsl.vocabulary import LAST, ROWS, AnyAxis, Axis, Bounds, Factor, Indices, Matrix, Row, Square

FAMILY = "reading"


@rules(
    {
        "gather-before-relu": Relu,
        "gather-before-neg": Neg,
        "gather-before-reciprocal": Reciprocal,
        "gather-before-exp": Exp,
        "gather-before-erf": Erf,
        "gather-before-tanh": Tanh,
        "gather-before-sqrt": Sqrt,
        "gather-before-log": Log,
        "gather-before-sigmoid": Sigmoid,
    }
)
def gather_before_function(f: OperatorConstructor, x: Tensor, axis: AnyAxis, i: Indices) -> Rewrite:
    """A function of elements is computed only of those that are gathered."""
    return Rewrite(Gather(f(x), i, axis=axis), f(Gather(x, i, axis=axis)))


@rule("gather-before-clip")
def gather_before_clip(x: Tensor, axis: AnyAxis, bounds: Bounds, i: Indices) -> Rewrite:
    """A Clip is computed only of the elements that are gathered."""
    return Rewrite(Gather(Clip(x, **bounds), i, axis=axis), Clip(Gather(x, i, axis=axis), **bounds))


@rules({"gather-before-square": 2.0, "gather-before-cube": 3.0, "gather-before-root": 0.5})
def gather_before_power(exponent: float, x: Tensor, axis: AnyAxis, i: Indices) -> Rewrite:
    """A power is computed only of the elements that are gathered."""
    return Rewrite(Gather(Pow(x, exponent=exponent), i, axis=axis), Pow(Gather(x, i, axis=axis), exponent=exponent))


@rules(
    {
        "gather-before-add-of-two": Add,
        "gather-before-mul-of-two": Mul,
        "gather-before-sub-of-two": Sub,
        "gather-before-div-of-two": Div,
    }
)
def gather_before_two(op: OperatorConstructor, x: Tensor, z: Tensor, axis: AnyAxis, i: Indices) -> Rewrite:
    """Both operands are gathered where both have the axis."""
    return Rewrite(
        Gather(op(x, z), i, axis=axis),
        op(Gather(x, i, axis=axis), Gather(z, i, axis=axis)),
        where=[x.dim(axis) == z.dim(axis)],
    )


@rules(
    {
        "gather-before-add-of-one": Add,
        "gather-before-mul-of-one": Mul,
        "gather-before-sub-of-one": Sub,
        "gather-before-div-of-one": Div,
    }
)
def gather_before_left(op: OperatorConstructor, x: Tensor, z: Tensor, axis: AnyAxis, i: Indices) -> Rewrite:
    """The right operand stays whole where it does not reach to the axis."""
    return Rewrite(Gather(op(x, z), i, axis=axis), op(Gather(x, i, axis=axis), z), where=[z.rank < -axis])


@rules(
    {
        "gather-before-sub-of-one-from-right": Sub,
        "gather-before-div-of-one-from-right": Div,
    }
)
def gather_before_right(op: OperatorConstructor, x: Tensor, z: Tensor, axis: AnyAxis, i: Indices) -> Rewrite:
    """The left operand stays whole where it does not reach to the axis."""
    return Rewrite(Gather(op(z, x), i, axis=axis), op(z, Gather(x, i, axis=axis)), where=[z.rank < -axis])


@rule("gather-before-sum-of-two")
def gather_before_sum_of_two(x: Tensor, y: Tensor, axis: AnyAxis, i: Indices) -> Rewrite:
    """A Sum of two operands, as `bias-add-to-sum` and its like make them."""
    return Rewrite(
        Gather(Sum(x, y), i, axis=axis),
        Sum(Gather(x, i, axis=axis), Gather(y, i, axis=axis)),
        where=[x.dim(axis) == y.dim(axis)],
    )


@rule("gather-before-sum-of-one-and-bias")
def gather_before_sum_of_one_and_bias(x: Tensor, y: Tensor, axis: AnyAxis, i: Indices) -> Rewrite:
    """A Sum with a bias, which stays whole."""
    return Rewrite(Gather(Sum(x, y), i, axis=axis), Sum(Gather(x, i, axis=axis), y), where=[y.rank < -axis])


@rule("gather-before-sum-of-three")
def gather_before_sum_of_three(x: Tensor, y: Tensor, z: Tensor, axis: AnyAxis, i: Indices) -> Rewrite:
    """A Sum of three operands that all have the axis."""
    return Rewrite(
        Gather(Sum(x, y, z), i, axis=axis),
        Sum(Gather(x, i, axis=axis), Gather(y, i, axis=axis), Gather(z, i, axis=axis)),
        where=[x.dim(axis) == y.dim(axis), x.dim(axis) == z.dim(axis)],
    )


@rule("gather-before-sum-of-two-and-bias")
def gather_before_sum_of_two_and_bias(x: Tensor, y: Tensor, z: Tensor, axis: AnyAxis, i: Indices) -> Rewrite:
    """A Sum of two operands and a bias, which stays whole."""
    return Rewrite(
        Gather(Sum(x, y, z), i, axis=axis),
        Sum(Gather(x, i, axis=axis), y, Gather(z, i, axis=axis)),
        where=[y.rank < -axis, x.dim(axis) == z.dim(axis)],
    )


@rule("gather-before-reshaped-gemm")
def gather_before_reshaped_gemm(
    x: Tokens, w: Matrix, c: Row, axis: AnyAxis, q: FlatShape, r: FullShape, i: Indices
) -> Rewrite:
    """A product of all rows as one Gemm (`linear-to-gemm`) is, of some, the product that it was."""
    return Rewrite(
        Gather(Reshape(Gemm(Reshape(x, shape=q), w, c), shape=r), i, axis=axis),
        Add(MatMul(Gather(x, i, axis=axis), w), c),
        where=[axis < LAST, q.is_in(FLAT), r.is_in(FULL)],
    )


@rule("gather-before-product")
def gather_before_product(x: Tensor, w: Matrix, axis: AnyAxis, i: Indices) -> Rewrite:
    """The left operand of a product is gathered along other axes than those of the matrices."""
    return Rewrite(Gather(MatMul(x, w), i, axis=axis), MatMul(Gather(x, i, axis=axis), w), where=[axis < LAST])


@rule("gather-before-parallel-products")
def gather_before_parallel_products(x: Tensor, w: Tensor, axis: AnyAxis, i: Indices) -> Rewrite:
    """Only those of many products are computed that are asked for."""
    return Rewrite(
        Gather(MatMul(x, w), i, axis=axis),
        MatMul(Gather(x, i, axis=axis), Gather(w, i, axis=axis)),
        where=[axis < ROWS, x.dim(axis) == w.dim(axis)],
    )


@rule("gather-before-softmax")
def gather_before_softmax(x: Tensor, axis: AnyAxis, s: Axis, i: Indices) -> Rewrite:
    """A softmax along an axis behind the one that is gathered."""
    return Rewrite(Gather(Softmax(x, axis=s), i, axis=axis), Softmax(Gather(x, i, axis=axis), axis=s), where=[axis < s])


@rule("gather-before-layer-norm")
def gather_before_layer_norm(x: Tensor, g: Row, axis: AnyAxis, n: Factor, i: Indices) -> Rewrite:
    """A normalisation of rows, where other axes are gathered."""
    return Rewrite(
        Gather(LayerNormalization(x, g, epsilon=n), i, axis=axis),
        LayerNormalization(Gather(x, i, axis=axis), g, epsilon=n),
        where=[axis < LAST],
    )


@rule("gather-before-layer-norm-with-shift")
def gather_before_layer_norm_with_shift(x: Tensor, g: Row, c: Row, axis: AnyAxis, n: Factor, i: Indices) -> Rewrite:
    """A normalisation of rows with a shift, where other axes are gathered."""
    return Rewrite(
        Gather(LayerNormalization(x, g, c, epsilon=n), i, axis=axis),
        LayerNormalization(Gather(x, i, axis=axis), g, c, epsilon=n),
        where=[axis < LAST],
    )


@rules({"gather-before-reducesum-of-rows": ReduceSum, "gather-before-reducemean-of-rows": ReduceMean})
def gather_before_sum_of_rows(op: OperatorConstructor, x: Tensor, axis: AnyAxis, i: Indices) -> Rewrite:
    """Sums and means of rows, where other axes are gathered. ONNX Runtime does not reduce no elements."""
    return Rewrite(
        Gather(op(x, axes=[LAST], keepdims=1), i, axis=axis),
        op(Gather(x, i, axis=axis), axes=[LAST], keepdims=1),
        where=[axis < LAST, i.elements > 0],
    )


@false_control("gather-past-the-mean-of-its-axis", of="gather-before-reducemean-of-rows")
def gather_past_the_mean_of_its_axis(x: Annotated[Tensor, Shape("m n")], i: Annotated[Tensor, Shape("1")]) -> Rewrite:
    """False: the mean of one element is not that of all."""
    return Rewrite(
        Gather(ReduceMean(x, axes=[LAST], keepdims=1), i, axis=LAST),
        ReduceMean(Gather(x, i, axis=LAST), axes=[LAST], keepdims=1),
    )


@false_control("gather-of-one-addend", of="gather-before-add-of-one")
def gather_of_one_addend(x: Annotated[Tensor, Shape("m n")], z: Row, i: Row) -> Rewrite:
    """False: the other addend has the axis, too."""
    return Rewrite(Gather(Add(x, z), i, axis=LAST), Add(Gather(x, i, axis=LAST), z))


@false_control("gather-along-another-axis", of="gather-before-relu")
def gather_along_another_axis(x: Square, i: Row) -> Rewrite:
    """False: rows are not columns, though the matrix is square."""
    return Rewrite(Gather(Relu(x), i, axis=ROWS), Relu(Gather(x, i, axis=LAST)))
