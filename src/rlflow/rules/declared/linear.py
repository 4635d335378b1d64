"""Products with weights, and where their factors and biases go.

Weights are constant wherever a rule moves work to them: such work is done once, when the model is loaded. An example is
`scale-into-weight`: (x w) s = x (w s). Every rule leaves no more products to compute at run time than it found.
"""

from __future__ import annotations

from typing import Annotated

from rlflow.rules.dsl import CONSTANT, Attribute, Partition, Rewrite, Shape, Tensor, false_control, ints, rule, rules
from rlflow.rules.dsl import split as parts_of
from rlflow.rules.dsl.operators import Add, Concat, Div, Gemm, MatMul, Mul, Reciprocal, Reshape, Split, Sum, Transpose
from rlflow.rules.dsl.vocabulary import Activation, Constant, NewShape, Permutation, Row, Rows, Weight, WeightRow

FAMILY = "linear"


@rules(
    {
        "merge-2-matmuls": (2, False),
        "merge-2-linears": (2, True),
        "merge-3-matmuls": (3, False),
        "merge-3-linears": (3, True),
    }
)
def merge_products(
    case: tuple[int, bool],
    x: Activation,
    w0: Annotated[Tensor, Shape("k n0"), CONSTANT],
    w1: Annotated[Tensor, Shape("k n1"), CONSTANT],
    w2: Annotated[Tensor, Shape("k n2"), CONSTANT],
    c0: Annotated[Tensor, Shape("n0"), CONSTANT],
    c1: Annotated[Tensor, Shape("n1"), CONSTANT],
    c2: Annotated[Tensor, Shape("n2"), CONSTANT],
) -> Rewrite:
    """Products (with bias) that share an operand, as one wider product (TASO section 2; QKV of a transformer)."""
    count, bias = case
    weights, biases = (w0, w1, w2)[:count], (c0, c1, c2)[:count]

    products = [MatMul(x, w) for w in weights]
    whole = MatMul(x, Concat(*weights, axis=-1))
    if bias:
        products = [Add(product, c) for product, c in zip(products, biases, strict=True)]
        whole = Add(whole, Concat(*biases, axis=-1))

    return Rewrite(products, parts_of(whole, -1, *(w.dim(-1) for w in weights)))


@rules(
    {
        "split-matmul-2": {"count": 2, "sizes": Annotated[Attribute, Partition("w", axis=-1, parts=2)]},
        "split-matmul-3": {"count": 3, "sizes": Annotated[Attribute, Partition("w", axis=-1, parts=3)]},
    }
)
def split_product(count: int, x: Activation, w: Weight, sizes: Attribute) -> Rewrite:
    """A product that is split right away, as a product for each part."""
    whole, weights = Split(MatMul(x, w), axis=-1, split=sizes), Split(w, axis=-1, split=sizes)
    parts = range(count)
    return Rewrite([whole[i] for i in parts], [MatMul(x, weights[i]) for i in parts], where=[sizes.length == count])


@rule("scale-to-left-operand", "scale-out-of-left-operand")
def scale_to_left_operand(a: Activation, b: Annotated[Tensor, Shape("...b k n")], s: Constant) -> Rewrite:
    """A factor of a product, as a factor of its left operand."""
    return Rewrite(Mul(MatMul(a, b), s), MatMul(Mul(a, s), b), where=[s.elements == 1])


@rule("scale-into-weight")
def scale_into_weight(x: Activation, w: Weight, s: Constant) -> Rewrite:
    """A factor of a product disappears in its weight."""
    return Rewrite(Mul(MatMul(x, w), s), MatMul(x, Mul(w, s)), where=[s.elements == 1])


@rule("scale-past-bias")
def scale_past_bias(x: Tensor, c: Constant, s: Constant) -> Rewrite:
    """A factor of a sum, as one of both addends."""
    return Rewrite(Mul(Add(x, c), s), Add(Mul(x, s), Mul(c, s)), where=[s.elements == 1])


@rule("scale-past-transpose", "scale-before-transpose", family="movement")
def scale_past_transpose(x: Tensor, s: Constant, p: Permutation) -> Rewrite:
    """A factor of a transpose, as one of its operand, on its way to a product."""
    return Rewrite(Mul(Transpose(x, perm=p), s), Transpose(Mul(x, s), perm=p), where=[s.elements == 1])


@rule("scale-past-reshape", "scale-before-reshape", family="movement")
def scale_past_reshape(x: Tensor, s: Constant, t: NewShape) -> Rewrite:
    """A factor of a reshape, as one of its operand, on its way to a product."""
    return Rewrite(Mul(Reshape(x, shape=t), s), Reshape(Mul(x, s), shape=t), where=[s.elements == 1])


@rule("divide-to-multiply")
def divide_to_multiply(x: Tensor, s: Constant) -> Rewrite:
    """A division by a constant is a product with its reciprocal, which is computed once."""
    return Rewrite(Div(x, s), Mul(x, Reciprocal(s)))


@rule("linear-to-gemm")
def linear_to_gemm(x: Annotated[Tensor, Shape("b m k")], w: Weight, c: WeightRow) -> Rewrite:
    """A product of all rows of a batch with a bias, as one Gemm."""
    rows = ints(x.dim(0) * x.dim(1), x.dim(2))
    shape = ints(x.dim(0), x.dim(1), w.dim(1))
    return Rewrite(Add(MatMul(x, w), c), Reshape(Gemm(Reshape(x, shape=rows), w, c), shape=shape))


@rule("gemm-to-linear")
def gemm_to_linear(x: Annotated[Tensor, Shape("m k")], w: Annotated[Tensor, Shape("k n")], c: Row) -> Rewrite:
    """A Gemm without factors, as a product and a bias."""
    return Rewrite(Gemm(x, w, c), Add(MatMul(x, w), c))


@rule("bias-add-to-sum", "bias-sum-to-add")
def bias_add_to_sum(x: Activation, w: Weight, c: WeightRow) -> Rewrite:
    """A bias in an n-ary Sum, which ONNX Runtime does not fuse."""
    return Rewrite(Add(MatMul(x, w), c), Sum(MatMul(x, w), c))


@rule("residual-bias-to-sum", "sum-to-residual-bias")
def residual_bias_to_sum(x: Rows, c: WeightRow, y: Rows) -> Rewrite:
    """A bias and a residual in one Sum."""
    return Rewrite(Add(Add(x, c), y), Sum(x, c, y))


@false_control("bias-moves-past-any-product", of="scale-past-bias")
def bias_moves_past_any_product(
    a: Annotated[Tensor, Shape("m k")], b: Annotated[Tensor, Shape("k n")], c: Row
) -> Rewrite:
    """False: a bias of the right operand would have to be multiplied, too."""
    return Rewrite(MatMul(a, Add(b, c)), Add(MatMul(a, b), c))
