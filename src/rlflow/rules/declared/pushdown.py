"""Selections before what works within them: functions of elements, and products, sums and norms of other axes.

A layer whose result is read in part is computed for that part alone: a head that reads one token of a transformer
leaves one token of work to its last layers. All rules lead towards the inputs. The indices of a gather may be of any
rank and take the place of its axis, so that axes before it move: all laws here speak of axes behind it, counted from
the end, or of none. An example is `slice-before-softmax`.
"""

from __future__ import annotations

from typing import Annotated

from rlflow.rules.declared.selections import SELECTIONS, Selection
from rlflow.rules.dsl import (
    Attribute,
    Choice,
    OperatorConstructor,
    Rewrite,
    Shape,
    Tensor,
    false_control,
    law,
    laws,
    rule,
    tensor,
)
from rlflow.rules.dsl.operators import (
    Add,
    Clip,
    Div,
    Erf,
    Exp,
    Gather,
    Gelu,
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
from rlflow.rules.dsl.vocabulary import (
    BACKWARDS,
    LAST,
    ROWS,
    Approximation,
    Axis,
    Bounds,
    Extent,
    Factor,
    Matrix,
    OnOff,
    Row,
    Square,
)

FAMILY = "reading"

_X, _W = tensor("x"), tensor("w")
_BATCH, _TIME, _WIDTH, _COLUMNS = _X.dim(0), _X.dim(1), _X.dim(2), _W.dim(1)
FLAT = ([_BATCH * _TIME, _WIDTH], [-1, _WIDTH])
FULL = ([_BATCH, _TIME, _COLUMNS], [-1, _TIME, _COLUMNS])
"""Shapes of all rows of a batch, and of the batch of all rows that are computed."""

Tokens = Annotated[Tensor, Shape("b t k")]
FlatShape = Annotated[Attribute, Choice(*FLAT)]
FullShape = Annotated[Attribute, Choice(*FULL)]


@laws(
    {
        ("slice-before-relu", "gather-before-relu"): Relu,
        ("slice-before-neg", "gather-before-neg"): Neg,
        ("slice-before-reciprocal", "gather-before-reciprocal"): Reciprocal,
        ("slice-before-exp", "gather-before-exp"): Exp,
        ("slice-before-erf", "gather-before-erf"): Erf,
        ("slice-before-tanh", "gather-before-tanh"): Tanh,
        ("slice-before-sqrt", "gather-before-sqrt"): Sqrt,
        ("slice-before-log", "gather-before-log"): Log,
        ("slice-before-sigmoid", "gather-before-sigmoid"): Sigmoid,
    },
    over=SELECTIONS,
)
def function(f: OperatorConstructor, x: Tensor, read: Selection) -> Rewrite:
    """A function of elements is computed only of those that are read."""
    return Rewrite(read(f(x)), f(read(x)), where=read.where)


@law("slice-before-clip", "gather-before-clip", over=SELECTIONS)
def clip(x: Tensor, read: Selection, bounds: Bounds) -> Rewrite:
    """A Clip is computed only of the elements that are read."""
    return Rewrite(read(Clip(x, **bounds)), Clip(read(x), **bounds), where=read.where)


@law("slice-before-gelu", "gather-before-gelu", over=SELECTIONS)
def gelu(x: Tensor, read: Selection, a: Approximation) -> Rewrite:
    """A Gelu is computed only of the elements that are read."""
    return Rewrite(read(Gelu(x, approximate=a)), Gelu(read(x), approximate=a), where=read.where)


@laws(
    {
        ("slice-before-square", "gather-before-square"): 2.0,
        ("slice-before-cube", "gather-before-cube"): 3.0,
        ("slice-before-root", "gather-before-root"): 0.5,
    },
    over=SELECTIONS,
)
def power(exponent: float, x: Tensor, read: Selection) -> Rewrite:
    """A power is computed only of the elements that are read."""
    return Rewrite(read(Pow(x, exponent=exponent)), Pow(read(x), exponent=exponent), where=read.where)


@laws(
    {
        ("slice-before-add-of-two", "gather-before-add-of-two"): Add,
        ("slice-before-mul-of-two", "gather-before-mul-of-two"): Mul,
        ("slice-before-sub-of-two", "gather-before-sub-of-two"): Sub,
        ("slice-before-div-of-two", "gather-before-div-of-two"): Div,
    },
    over=SELECTIONS,
)
def two(op: OperatorConstructor, x: Tensor, z: Tensor, read: Selection) -> Rewrite:
    """Both operands are read in part where both have the axis."""
    return Rewrite(read(op(x, z)), op(read(x), read(z)), where=[*read.where, x.dim(read.axis) == z.dim(read.axis)])


@laws(
    {
        ("slice-before-add-of-one", "gather-before-add-of-one"): Add,
        ("slice-before-mul-of-one", "gather-before-mul-of-one"): Mul,
        ("slice-before-sub-of-one", "gather-before-sub-of-one"): Sub,
        ("slice-before-div-of-one", "gather-before-div-of-one"): Div,
    },
    over=SELECTIONS,
)
def left(op: OperatorConstructor, x: Tensor, z: Tensor, read: Selection) -> Rewrite:
    """The right operand stays whole where it does not reach to the axis."""
    return Rewrite(read(op(x, z)), op(read(x), z), where=[*read.where, z.rank < -read.axis])


@laws(
    {
        ("slice-before-sub-of-one-from-right", "gather-before-sub-of-one-from-right"): Sub,
        ("slice-before-div-of-one-from-right", "gather-before-div-of-one-from-right"): Div,
    },
    over=SELECTIONS,
)
def right(op: OperatorConstructor, x: Tensor, z: Tensor, read: Selection) -> Rewrite:
    """The left operand stays whole where it does not reach to the axis."""
    return Rewrite(read(op(z, x)), op(z, read(x)), where=[*read.where, z.rank < -read.axis])


@law("slice-before-sum-of-two", "gather-before-sum-of-two", over=SELECTIONS)
def sum_of_two(x: Tensor, y: Tensor, read: Selection) -> Rewrite:
    """A Sum of two operands, as `bias-add-to-sum` and its like make them."""
    return Rewrite(read(Sum(x, y)), Sum(read(x), read(y)), where=[*read.where, x.dim(read.axis) == y.dim(read.axis)])


@law("slice-before-sum-of-one-and-bias", "gather-before-sum-of-one-and-bias", over=SELECTIONS)
def sum_of_one_and_bias(x: Tensor, y: Tensor, read: Selection) -> Rewrite:
    """A Sum with a bias, which stays whole."""
    return Rewrite(read(Sum(x, y)), Sum(read(x), y), where=[*read.where, y.rank < -read.axis])


@law("slice-before-sum-of-three", "gather-before-sum-of-three", over=SELECTIONS)
def sum_of_three(x: Tensor, y: Tensor, z: Tensor, read: Selection) -> Rewrite:
    """A Sum of three operands that all have the axis."""
    length = x.dim(read.axis)
    return Rewrite(
        read(Sum(x, y, z)),
        Sum(read(x), read(y), read(z)),
        where=[*read.where, length == y.dim(read.axis), length == z.dim(read.axis)],
    )


@law("slice-before-sum-of-two-and-bias", "gather-before-sum-of-two-and-bias", over=SELECTIONS)
def sum_of_two_and_bias(x: Tensor, y: Tensor, z: Tensor, read: Selection) -> Rewrite:
    """A Sum of two operands and a bias, which stays whole."""
    return Rewrite(
        read(Sum(x, y, z)),
        Sum(read(x), y, read(z)),
        where=[*read.where, y.rank < -read.axis, x.dim(read.axis) == z.dim(read.axis)],
    )


@law("slice-before-reshaped-gemm", "gather-before-reshaped-gemm", over=SELECTIONS)
def reshaped_gemm(x: Tokens, w: Matrix, c: Row, read: Selection, q: FlatShape, r: FullShape) -> Rewrite:
    """A product of all rows, which `linear-to-gemm` made one Gemm, is a product again for the rows that are read."""
    return Rewrite(
        read(Reshape(Gemm(Reshape(x, shape=q), w, c), shape=r)),
        Add(MatMul(read(x), w), c),
        where=[*read.where, read.axis < LAST, q.is_in(FLAT), r.is_in(FULL)],
    )


@law("slice-before-product", "gather-before-product", over=SELECTIONS)
def product(x: Tensor, w: Matrix, read: Selection) -> Rewrite:
    """The left operand of a product is read in part along other axes than those of the matrices."""
    return Rewrite(read(MatMul(x, w)), MatMul(read(x), w), where=[*read.where, read.axis < LAST])


@law("slice-before-parallel-products", "gather-before-parallel-products", over=SELECTIONS)
def parallel_products(x: Tensor, w: Tensor, read: Selection) -> Rewrite:
    """Many products are computed only where they are read."""
    return Rewrite(
        read(MatMul(x, w)),
        MatMul(read(x), read(w)),
        where=[*read.where, read.axis < ROWS, x.dim(read.axis) == w.dim(read.axis)],
    )


@law("slice-before-softmax", "gather-before-softmax", over=SELECTIONS)
def softmax(x: Tensor, read: Selection, s: Axis) -> Rewrite:
    """A softmax along an axis behind the one that is read in part."""
    return Rewrite(read(Softmax(x, axis=s)), Softmax(read(x), axis=s), where=[*read.where, read.axis < s])


@laws(
    {
        ("slice-before-layer-norm", "gather-before-layer-norm"): False,
        ("slice-before-layer-norm-with-shift", "gather-before-layer-norm-with-shift"): True,
    },
    over=SELECTIONS,
)
def layer_norm(shift: bool, x: Tensor, g: Row, c: Row, read: Selection, n: Factor) -> Rewrite:
    """A normalisation of rows, where another axis is read in part."""
    weights = [g, c] if shift else [g]
    return Rewrite(
        read(LayerNormalization(x, *weights, epsilon=n)),
        LayerNormalization(read(x), *weights, epsilon=n),
        where=[*read.where, read.axis < LAST],
    )


@laws(
    {
        ("slice-before-reducesum-of-rows", "gather-before-reducesum-of-rows"): ReduceSum,
        ("slice-before-reducemean-of-rows", "gather-before-reducemean-of-rows"): ReduceMean,
    },
    over=SELECTIONS,
)
def sum_of_rows(op: OperatorConstructor, x: Tensor, read: Selection) -> Rewrite:
    """Sums and means of rows, where another axis is read in part. ONNX Runtime does not reduce no elements."""
    return Rewrite(
        read(op(x, axes=[LAST], keepdims=1)),
        op(read(x), axes=[LAST], keepdims=1),
        where=[*read.where, read.axis < LAST, read.is_some_of(x)],
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


@rule("mean-before-product")
def mean_before_product(x: Annotated[Tensor, Shape("...b m k")], w: Matrix, k: OnOff) -> Rewrite:
    """The mean of all rows of a product is the product of their mean: one row instead of all."""
    mean = MatMul(ReduceMean(x, axes=[ROWS], keepdims=k), w)
    return Rewrite(ReduceMean(MatMul(x, w), axes=[ROWS], keepdims=k), mean)


@rule("mean-before-bias")
def mean_before_bias(x: Annotated[Tensor, Shape("...b m n")], c: Row, k: OnOff) -> Rewrite:
    """A bias is added to the mean of all rows instead of to all of them."""
    return Rewrite(
        ReduceMean(Add(x, c), axes=[ROWS], keepdims=k),
        Add(ReduceMean(x, axes=[ROWS], keepdims=k), c),
        where=[x.dim(ROWS) >= 1],
    )
