"""Normalisation, attention and the sums around them, as transformers have them.

An example is `value-bias-past-attention`: the rows of a softmax add up to one, so that a bias of the values is a bias
of the result.
"""

from __future__ import annotations

from typing import Annotated

from rlflow.rules.dsl import CONSTANT, Operand, Rewrite, Shape, Tensor, false_control, rule
from rlflow.rules.dsl.operators import (
    Add,
    Clip,
    Div,
    LayerNormalization,
    MatMul,
    Mul,
    Pow,
    ReduceMean,
    Softmax,
    Sqrt,
    Sub,
    Sum,
)
from rlflow.rules.dsl.vocabulary import Activation, Bounds, Factor, Literal, Row, Rows, Scalar, Square, WeightRow

FAMILY = "transformer"


@rule("residual-add-to-sum", "residual-sum-to-add")
def residual_add_to_sum(x: Rows, y: Rows, g: Row, c: Row, e: Factor) -> Rewrite:
    """The residual before a normalisation, in an n-ary Sum."""
    return Rewrite(
        LayerNormalization(Add(x, y), g, c, epsilon=e),
        LayerNormalization(Sum(x, y), g, c, epsilon=e),
    )


@rule("layer-norm-shift-to-add", "add-to-layer-norm-shift")
def layer_norm_shift_to_add(x: Rows, g: Row, c: Row, e: Factor) -> Rewrite:
    """The shift of a normalisation (Ba et al., 2016) as a sum behind it."""
    return Rewrite(LayerNormalization(x, g, c, epsilon=e), Add(LayerNormalization(x, g, epsilon=e), c))


def _mean(x: Operand) -> Tensor:
    return ReduceMean(x, axes=[-1], keepdims=1)


@rule("fuse-layer-norm", opset=17)
def fuse_layer_norm(x: Rows, g: Row, c: Row, e: Literal) -> Rewrite:
    """The pieces of a layer normalisation, as exporters write them."""
    centred = Sub(x, _mean(x))
    deviation = Sqrt(Add(_mean(Pow(centred, exponent=2.0)), e))
    normal = Add(Mul(Div(centred, deviation), g), c)
    return Rewrite(normal, LayerNormalization(x, g, c, epsilon=e.number), where=[g.dim(0) >= 1])


@false_control("layer-norm-ignores-scale", of="fuse-layer-norm")
def layer_norm_ignores_scale(x: Annotated[Tensor, Shape("m n")], s: Scalar, g: Row, c: Row, e: Factor) -> Rewrite:
    """False: epsilon does not scale along, and the sign of a factor counts."""
    return Rewrite(LayerNormalization(Mul(x, s), g, c, epsilon=e), LayerNormalization(x, g, c, epsilon=e))


@rule("associate-weights", family="linear")
def associate_weights(
    x: Activation,
    v: Annotated[Tensor, Shape("k l"), CONSTANT],
    w: Annotated[Tensor, Shape("l n"), CONSTANT],
) -> Rewrite:
    """Two weights in a row, as their product."""
    return Rewrite(MatMul(MatMul(x, v), w), MatMul(x, MatMul(v, w)))


@rule("merge-biases", family="linear")
def merge_biases(x: Rows, c: WeightRow, d: WeightRow) -> Rewrite:
    """Two biases in a row, as their sum."""
    return Rewrite(Add(Add(x, c), d), Add(x, Add(c, d)))


@rule("drop-softmax-shift")
def drop_softmax_shift(x: Annotated[Tensor, Shape("...b m n")], s: Annotated[Tensor, Shape("...b m 1")]) -> Rewrite:
    """A number that is added to a whole row cancels in its softmax, unless it is a mask: then the row is uniform."""
    return Rewrite(Softmax(Add(x, s)), Softmax(x), where=[s.is_bounded])


@false_control("masked-rows-are-ordinary", of="drop-softmax-shift")
def masked_rows_are_ordinary(
    x: Annotated[Tensor, Shape("...b m n")], s: Annotated[Tensor, Shape("...b m 1")]
) -> Rewrite:
    """False: a row that is hidden altogether is uniform, or not a number, and no softmax of what it hides."""
    return Rewrite(Softmax(Add(x, s)), Softmax(x))


@false_control("softmax-is-linear", of="drop-softmax-shift")
def softmax_is_linear(a: Square, b: Square) -> Rewrite:
    """False: a factor of the operand is none of the softmax."""
    return Rewrite(Softmax(Mul(a, b)), Mul(Softmax(a), b))


@rule("value-bias-past-attention")
def value_bias_past_attention(a: Activation, v: Annotated[Tensor, Shape("...b k n")], c: Row) -> Rewrite:
    """The rows of a softmax add up to one, where there is anything to add up."""
    return Rewrite(MatMul(Softmax(a), Add(v, c)), Add(MatMul(Softmax(a), v), c), where=[a.dim(-1) >= 1])


@rule("clip-once", family="normalisation")
def clip_once(x: Tensor, bounds: Bounds) -> Rewrite:
    """A second Clip within the same bounds does nothing."""
    return Rewrite(Clip(Clip(x, **bounds), **bounds), Clip(x, **bounds))


def _clip(x: Operand, low: float, high: float) -> Tensor:
    return Clip(x, min=low, max=high)


@false_control("the-second-clip-counts", of="clip-once")
def the_second_clip_counts(a: Square) -> Rewrite:
    """False: if the bounds do not meet, the outcome is one of them."""
    return Rewrite(_clip(_clip(a, 0.0, 1.0), 2.0, 3.0), _clip(a, 2.0, 3.0))


@false_control("clip-passes-sum", of="clip-once")
def clip_passes_sum(a: Square, b: Square) -> Rewrite:
    """False: this is right only where nothing is clipped."""
    return Rewrite(_clip(Add(a, b), 0.0, 1.0), Add(_clip(a, 0.0, 1.0), _clip(b, 0.0, 1.0)))
