"""Constants that meet are one: factors and addends with those of a product, a Gemm, or a normalisation before them.

    Mul(Add(MatMul(x, w), c), s)      =>      Add(MatMul(x, w s), c s)          the layer scale of ConvNeXt and DINOv2

What is computed of constants alone is computed once, at export, so that each rule takes an operation away.
"""

from __future__ import annotations

from typing import Annotated

from rlflow.rules.dsl import CONSTANT, Rewrite, Shape, Tensor, false_control, rule, rules
from rlflow.rules.dsl.operators import (
    Add,
    BatchNormalization,
    Gemm,
    LayerNormalization,
    MatMul,
    Mul,
    Reshape,
    Squeeze,
    Sub,
    Transpose,
    Unsqueeze,
)
from rlflow.rules.dsl.vocabulary import (
    LAST,
    Activation,
    Constant,
    Factor,
    GemmFactors,
    GemmRows,
    Rows,
    TransposedWeight,
    Weight,
    WeightRow,
)

FAMILY = "constants"

PerColumn = Annotated[Tensor, Shape("...a n"), CONSTANT]
Moments = Annotated[Tensor, Shape("n"), CONSTANT]


@rule("affine-of-affine")
def affine_of_affine(x: Tensor, s: Constant, a: Constant, t: Constant) -> Rewrite:
    """A factor behind a factor and an addend joins both."""
    return Rewrite(Mul(Add(Mul(x, s), a), t), Add(Mul(x, Mul(s, t)), Mul(a, t)))


@rule("addend-through-factor")
def addend_through_factor(x: Tensor, a: Constant, s: Constant, b: Constant) -> Rewrite:
    """An addend before a factor joins the one behind it."""
    return Rewrite(Add(Mul(Add(x, a), s), b), Add(Mul(x, s), Add(Mul(a, s), b)))


@rule("scale-columns-into-weight")
def scale_columns_into_weight(x: Activation, w: Weight, s: PerColumn) -> Rewrite:
    """A factor of each column of a product moves into its weight."""
    row = Reshape(s, shape=[-1])
    return Rewrite(Mul(MatMul(x, w), s), MatMul(x, Mul(w, row)), where=[s.elements == s.dim(LAST)])


@rule("scale-columns-into-linear")
def scale_columns_into_linear(x: Activation, w: Weight, c: WeightRow, s: PerColumn) -> Rewrite:
    """A factor of each column of a product with a bias moves into both."""
    row = Reshape(s, shape=[-1])
    return Rewrite(
        Mul(Add(MatMul(x, w), c), s),
        Add(MatMul(x, Mul(w, row)), Mul(c, row)),
        where=[s.elements == s.dim(LAST)],
    )


@rule("scale-columns-into-gemm")
def scale_columns_into_gemm(x: GemmRows, w: Weight, c: WeightRow, s: PerColumn, factors: GemmFactors) -> Rewrite:
    """A factor of each column of a Gemm moves into its weight and its bias."""
    row = Reshape(s, shape=[-1])
    return Rewrite(
        Mul(Gemm(x, w, c, **factors), s),
        Gemm(x, Mul(w, row), Mul(c, row), **factors),
        where=[s.elements == s.dim(LAST)],
    )


@rule("scale-columns-into-transposed-gemm")
def scale_columns_into_transposed_gemm(
    x: GemmRows, w: TransposedWeight, c: WeightRow, s: PerColumn, factors: GemmFactors
) -> Rewrite:
    """A factor of each column of a Gemm that turns its weight over moves into that and its bias."""
    row = Reshape(s, shape=[-1])
    return Rewrite(
        Mul(Gemm(x, w, c, transB=1, **factors), s),
        Gemm(x, Mul(w, Reshape(s, shape=[-1, 1])), Mul(c, row), transB=1, **factors),
        where=[s.elements == s.dim(LAST)],
    )


@rules({"addend-to-gemm-bias": False, "addend-to-transposed-gemm-bias": True})
def addend_to_gemm_bias(
    transposed: bool,
    x: GemmRows,
    w: Annotated[Tensor, Shape("k n")],
    t: Annotated[Tensor, Shape("n k")],
    c: WeightRow,
    a: PerColumn,
    alpha: Factor,
) -> Rewrite:
    """An addend of each column of a Gemm joins its bias."""

    def product(bias: Tensor) -> Tensor:
        return Gemm(x, t, bias, alpha=alpha, transB=1) if transposed else Gemm(x, w, bias, alpha=alpha)

    return Rewrite(Add(product(c), a), product(Add(c, Reshape(a, shape=[-1]))), where=[a.elements == a.dim(LAST)])


@rules({"fold-batch-normalisation-of-gemm": False, "fold-batch-normalisation-of-transposed-gemm": True})
def fold_batch_normalisation_of_gemm(
    transposed: bool,
    x: GemmRows,
    w: Weight,
    t: TransposedWeight,
    c: Moments,
    scale: Moments,
    shift: Moments,
    mean: Moments,
    variance: Moments,
    e: Factor,
) -> Rewrite:
    """A normalisation of the columns of a Gemm, done to its weight and its bias."""
    zero = Sub(mean, mean)
    moved = Squeeze(BatchNormalization(Unsqueeze(c, axes=[0]), scale, shift, mean, variance, epsilon=e), axes=[-2])
    columns = BatchNormalization(Transpose(t, perm=[1, 0]) if transposed else w, scale, zero, zero, variance, epsilon=e)
    before = Gemm(x, t, c, transB=1) if transposed else Gemm(x, w, c)
    return Rewrite(
        BatchNormalization(before, scale, shift, mean, variance, epsilon=e),
        Gemm(x, Transpose(columns, perm=[1, 0]), moved, transB=1) if transposed else Gemm(x, columns, moved),
    )


@rule("fold-batch-normalisation-of-product")
def fold_batch_normalisation_of_product(
    x: GemmRows, w: Weight, scale: Moments, shift: Moments, mean: Moments, variance: Moments, e: Factor
) -> Rewrite:
    """A normalisation of the columns of a product, done to its weight, with a bias behind it."""

    def normalised(y: Tensor, shift: Tensor, mean: Tensor) -> Tensor:
        return BatchNormalization(y, scale, shift, mean, variance, epsilon=e)

    zero = Sub(mean, mean)
    bias = Squeeze(normalised(Unsqueeze(zero, axes=[0]), shift, mean), axes=[-2])
    return Rewrite(normalised(MatMul(x, w), shift, mean), Add(MatMul(x, normalised(w, zero, zero)), bias))


@rule("scale-into-layer-norm")
def scale_into_layer_norm(x: Rows, g: Moments, c: Moments, s: Moments, e: Factor) -> Rewrite:
    """A factor of each column of a layer normalisation joins its own, and its addend."""
    return Rewrite(
        Mul(LayerNormalization(x, g, c, epsilon=e), s), LayerNormalization(x, Mul(g, s), Mul(c, s), epsilon=e)
    )


@rule("addend-into-layer-norm")
def addend_into_layer_norm(x: Rows, g: Moments, c: Moments, a: Moments, e: Factor) -> Rewrite:
    """An addend of each column of a layer normalisation joins its own."""
    return Rewrite(Add(LayerNormalization(x, g, c, epsilon=e), a), LayerNormalization(x, g, Add(c, a), epsilon=e))


LowRank = Annotated[Tensor, Shape("k r"), CONSTANT]
FromLowRank = Annotated[Tensor, Shape("r n"), CONSTANT]


@rule("low-rank-addend-into-weight")
def low_rank_addend_into_weight(x: Activation, w: Weight, a: LowRank, b: FromLowRank) -> Rewrite:
    """A product of low rank beside a product of the same input joins its weight (LoRA; Hu et al., 2021)."""
    return Rewrite(Add(MatMul(x, w), MatMul(MatMul(x, a), b)), MatMul(x, Add(w, MatMul(a, b))))


@rule("low-rank-addend-into-linear")
def low_rank_addend_into_linear(x: Activation, w: Weight, c: WeightRow, a: LowRank, b: FromLowRank) -> Rewrite:
    """A product of low rank beside a product with a bias joins the weight of that."""
    return Rewrite(Add(Add(MatMul(x, w), c), MatMul(MatMul(x, a), b)), Add(MatMul(x, Add(w, MatMul(a, b))), c))


@rules({"low-rank-addend-into-gemm": False, "low-rank-addend-into-transposed-gemm": True})
def low_rank_addend_into_gemm(
    transposed: bool, x: GemmRows, w: Weight, t: TransposedWeight, c: WeightRow, a: LowRank, b: FromLowRank
) -> Rewrite:
    """A product of low rank beside a Gemm of the same input joins its weight."""
    addend = MatMul(MatMul(x, a), b)
    if transposed:
        moved = Transpose(MatMul(a, b), perm=[1, 0])
        return Rewrite(Add(Gemm(x, t, c, transB=1), addend), Gemm(x, Add(t, moved), c, transB=1))
    return Rewrite(Add(Gemm(x, w, c), addend), Gemm(x, Add(w, MatMul(a, b)), c))


@false_control("factor-skips-the-bias", of="scale-columns-into-linear")
def factor_skips_the_bias(x: Activation, w: Weight, c: WeightRow, s: PerColumn) -> Rewrite:
    """False: the bias is multiplied, too."""
    return Rewrite(
        Mul(Add(MatMul(x, w), c), s),
        Add(MatMul(x, Mul(w, Reshape(s, shape=[-1]))), c),
        where=[s.elements == s.dim(LAST)],
    )
