"""From the pieces of a fused operator to the operator, and back, as exporters write the pieces.

A number in a source stands for any stored scalar of that value up to a rounding of float32: sqrt(2) is written as what
it is, so that the verifier knows it, while a model holds 1.4142135. An example is `fuse-rms-norm-of-power-quotient`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

from rlflow.ops.fused import TANH_GELU_CUBIC, TANH_GELU_SLOPE
from rlflow.rules.dsl import (
    Condition,
    Operand,
    Rewrite,
    Shape,
    Tensor,
    false_control,
    law,
    rule,
    rules,
)
from rlflow.rules.dsl.operators import (
    Add,
    Attention,
    Div,
    Erf,
    Exp,
    Gelu,
    LayerNormalization,
    MatMul,
    Mul,
    Neg,
    Pow,
    Reciprocal,
    ReduceMean,
    ReduceSum,
    RMSNormalization,
    Sigmoid,
    Softmax,
    Sqrt,
    Sub,
    Tanh,
    Transpose,
)
from rlflow.rules.dsl.vocabulary import Factor, Row, Rows

FAMILY = "fused"

Form = tuple[Callable[[Tensor, Tensor], Tensor], Callable[[Tensor], Tensor]]
"""An order of Gelu's factors, and its gate."""


def half_of_all(x: Tensor, gate: Tensor) -> Tensor:
    """x (1 + gate) / 2, halved at the end."""
    return Mul(Mul(x, Add(gate, 1.0)), 0.5)


def half_of_x(x: Tensor, gate: Tensor) -> Tensor:
    """x (1 + gate) / 2, x halved first."""
    return Mul(Mul(x, 0.5), Add(gate, 1.0))


def half_of_gate(x: Tensor, gate: Tensor) -> Tensor:
    """x (1 + gate) / 2, the gate halved first."""
    return Mul(x, Mul(Add(gate, 1.0), 0.5))


def error_function_of_quotient(x: Tensor) -> Tensor:
    """The gate of Gelu, x divided by a root."""
    return Erf(Div(x, Sqrt(2.0)))


def error_function_of_product(x: Tensor) -> Tensor:
    """The gate of Gelu, x multiplied by the root's reciprocal."""
    return Erf(Mul(x, Reciprocal(Sqrt(2.0))))


def _tangent(x: Tensor, cube: Tensor) -> Tensor:
    return Tanh(Mul(Add(x, Mul(cube, TANH_GELU_CUBIC)), TANH_GELU_SLOPE))


def tangent_of_power(x: Tensor) -> Tensor:
    """The gate of Gelu's approximation, the cube as a power."""
    return _tangent(x, Pow(x, exponent=3.0))


def tangent_of_product(x: Tensor) -> Tensor:
    """The gate of Gelu's approximation, the cube as products."""
    return _tangent(x, Mul(x, Mul(x, x)))


@rules(
    {
        "fuse-gelu-of-quotient-half-of-all": (half_of_all, error_function_of_quotient),
        "fuse-gelu-of-quotient-half-of-x": (half_of_x, error_function_of_quotient),
        "fuse-gelu-of-quotient-half-of-gate": (half_of_gate, error_function_of_quotient),
        "fuse-gelu-of-product-half-of-all": (half_of_all, error_function_of_product),
        "fuse-gelu-of-product-half-of-x": (half_of_x, error_function_of_product),
        "fuse-gelu-of-product-half-of-gate": (half_of_gate, error_function_of_product),
    }
)
def fuse_gelu(form: Form, x: Tensor) -> Rewrite:
    """Gelu by the error function (Hendrycks and Gimpel, 2016), in the orders of its factors."""
    halved, gate = form
    return Rewrite(halved(x, gate(x)), Gelu(x, approximate="none"))


@rules(
    {
        "fuse-tanh-gelu-of-power-half-of-all": (half_of_all, tangent_of_power),
        "fuse-tanh-gelu-of-power-half-of-x": (half_of_x, tangent_of_power),
        "fuse-tanh-gelu-of-power-half-of-gate": (half_of_gate, tangent_of_power),
        "fuse-tanh-gelu-of-product-half-of-all": (half_of_all, tangent_of_product),
        "fuse-tanh-gelu-of-product-half-of-x": (half_of_x, tangent_of_product),
        "fuse-tanh-gelu-of-product-half-of-gate": (half_of_gate, tangent_of_product),
    }
)
def fuse_tanh_gelu(form: Form, x: Tensor) -> Rewrite:
    """Gelu by the hyperbolic tangent of a cubic."""
    halved, gate = form
    return Rewrite(halved(x, gate(x)), Gelu(x, approximate="tanh"))


@rules({"fuse-sigmoid-of-quotient": partial(Div, 1.0), "fuse-sigmoid-of-reciprocal": Reciprocal})
def fuse_sigmoid(inverse: Callable[[Tensor], Tensor], x: Tensor) -> Rewrite:
    """A Sigmoid from its definition, 1 / (1 + exp(-x))."""
    return Rewrite(inverse(Add(Exp(Neg(x)), 1.0)), Sigmoid(x))


@rule("unfuse-gelu")
def unfuse_gelu(x: Tensor) -> Rewrite:
    """Gelu in pieces.

    No half of x comes out of it: two Gelus of one x would have it in common, and ONNX Runtime 1.31 then makes a model
    of their pieces that it refuses itself.
    """
    return Rewrite(Gelu(x, approximate="none"), half_of_all(x, error_function_of_quotient(x)))


@rule("unfuse-tanh-gelu")
def unfuse_tanh_gelu(x: Tensor) -> Rewrite:
    """Gelu's approximation by the hyperbolic tangent, in pieces."""
    return Rewrite(Gelu(x, approximate="tanh"), half_of_all(x, tangent_of_power(x)))


@false_control("gelu-of-a-rounded-root", of="fuse-gelu-of-quotient-half-of-all")
def gelu_of_a_rounded_root(x: Tensor) -> Rewrite:
    """False: the root of two is not 1.41."""
    return Rewrite(half_of_all(x, Erf(Div(x, 1.41))), Gelu(x, approximate="none"))


@false_control("gelu-without-its-half", of="fuse-gelu-of-quotient-half-of-all")
def gelu_without_its_half(x: Tensor) -> Rewrite:
    """False: this is twice Gelu."""
    return Rewrite(Mul(x, Add(error_function_of_quotient(x), 1.0)), Gelu(x, approximate="none"))


@false_control("gelu-by-tanh-is-gelu", of="fuse-tanh-gelu-of-power-half-of-all")
def gelu_by_tanh_is_gelu(x: Tensor) -> Rewrite:
    """False: the approximation of Gelu is near, but another function."""
    return Rewrite(Gelu(x, approximate="tanh"), Gelu(x, approximate="none"))


@false_control("pieces-of-gelu-are-of-tanh", of="fuse-tanh-gelu-of-power-half-of-all")
def pieces_of_gelu_are_of_tanh(x: Tensor) -> Rewrite:
    """False: the pieces are those of the exact form, the name that of the approximation."""
    return Rewrite(half_of_all(x, error_function_of_quotient(x)), Gelu(x, approximate="tanh"))


def mean(x: Operand) -> Tensor:
    """The mean of each row."""
    return ReduceMean(x, axes=[-1], keepdims=1)


def root_mean_square(square: Tensor, epsilon: Factor) -> Tensor:
    """The root of each row's mean square, given its squares, with epsilon added."""
    return Sqrt(Add(mean(square), epsilon))


def power(x: Tensor) -> Tensor:
    """The square as a power."""
    return Pow(x, exponent=2.0)


def product(x: Tensor) -> Tensor:
    """The square as a product."""
    return Mul(x, x)


def quotient(x: Tensor, root: Tensor) -> Tensor:
    """x over its root."""
    return Div(x, root)


def by_reciprocal(x: Tensor, root: Tensor) -> Tensor:
    """x times the reciprocal of its root."""
    return Mul(x, Reciprocal(root))


def by_inverse(x: Tensor, root: Tensor) -> Tensor:
    """x times one over its root."""
    return Mul(x, Div(1.0, root))


@rules(
    {
        "fuse-rms-norm-of-power-quotient": (power, quotient),
        "fuse-rms-norm-of-power-reciprocal": (power, by_reciprocal),
        "fuse-rms-norm-of-power-inverse": (power, by_inverse),
        "fuse-rms-norm-of-product-quotient": (product, quotient),
        "fuse-rms-norm-of-product-reciprocal": (product, by_reciprocal),
        "fuse-rms-norm-of-product-inverse": (product, by_inverse),
    }
)
def fuse_rms_norm(
    form: tuple[Callable[[Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]], x: Rows, g: Row, e: Factor
) -> Rewrite:
    """The pieces of RMS normalisation (Zhang and Sennrich, 2019), in the spellings of its square and quotient."""
    square, normal = form
    pieces = Mul(normal(x, root_mean_square(square(x), e)), g)
    return Rewrite(pieces, RMSNormalization(x, g, epsilon=e), where=[g.dim(0) >= 1])


@rule("unfuse-rms-norm")
def unfuse_rms_norm(x: Rows, g: Row, e: Factor) -> Rewrite:
    """RMS normalisation in pieces: `fuse-rms-norm-of-power-reciprocal` backwards."""
    return Rewrite(RMSNormalization(x, g, epsilon=e), Mul(by_reciprocal(x, root_mean_square(power(x), e)), g))


@rule("unfuse-layer-norm")
def unfuse_layer_norm(x: Rows, g: Row, c: Row, e: Factor) -> Rewrite:
    """Layer normalisation in pieces."""
    centred = Sub(x, mean(x))
    normal = Div(centred, root_mean_square(power(centred), e))
    return Rewrite(LayerNormalization(x, g, c, epsilon=e), Add(Mul(normal, g), c))


@false_control("rms-norm-is-layer-norm", of="fuse-rms-norm-of-power-quotient")
def rms_norm_is_layer_norm(x: Rows, g: Row, e: Factor) -> Rewrite:
    """False: the two normalisations agree only where the mean is zero."""
    return Rewrite(LayerNormalization(x, g, epsilon=e), RMSNormalization(x, g, epsilon=e))


@false_control("rms-norm-of-a-sum", of="fuse-rms-norm-of-product-quotient")
def rms_norm_of_a_sum(x: Rows, g: Row, e: Factor) -> Rewrite:
    """False: RMS normalisation divides by the root of the mean of the squares, not of their sum."""
    square_sum = ReduceSum(Mul(x, x), axes=[-1], keepdims=1)
    return Rewrite(Mul(Div(x, Sqrt(Add(square_sum, e))), g), RMSNormalization(x, g, epsilon=e))


@false_control("rms-norm-with-epsilon-outside", of="fuse-rms-norm-of-product-quotient")
def rms_norm_with_epsilon_outside(x: Rows, g: Row, e: Factor) -> Rewrite:
    """False: epsilon stands inside the root."""
    return Rewrite(Mul(Div(x, Add(Sqrt(mean(Mul(x, x))), e)), g), RMSNormalization(x, g, epsilon=e))


@false_control("rms-norm-without-a-root", of="fuse-rms-norm-of-product-quotient")
def rms_norm_without_a_root(x: Rows, g: Row, e: Factor) -> Rewrite:
    """False: RMS normalisation divides by the root of the mean square."""
    return Rewrite(Mul(Div(x, Add(mean(Mul(x, x)), e)), g), RMSNormalization(x, g, epsilon=e))


Queries = Annotated[Tensor, Shape("b h t d")]
Keys = Annotated[Tensor, Shape("b h s d")]
TurnedKeys = Annotated[Tensor, Shape("b h d s")]
Values = Annotated[Tensor, Shape("b h s e")]
Mask = Annotated[Tensor, Shape("...m t s")]
Heads = Annotated[Tensor, Shape("b h t t")]
SquareMask = Annotated[Tensor, Shape("t t")]


def turned(keys: Tensor) -> Tensor:
    """The last two axes exchanged."""
    return Transpose(keys, perm=[0, 1, 3, 2])


def weighted(scores: Tensor, v: Tensor, masks: list[Tensor]) -> Tensor:
    """The values, weighted by the scores."""
    for mask in masks:
        scores = Add(scores, mask)
    return MatMul(Softmax(scores), v)


def are_not_empty(q: Tensor, k: Tensor, v: Tensor) -> list[Condition]:
    """Every size is known and not 0: of no heads, tokens or features, ONNX Runtime has no Attention."""
    return [*(q.dim(axis) >= 1 for axis in range(4)), k.dim(3) >= 1, v.dim(3) >= 1]


_MASKS = ({"masked": False}, {"masked": True})


@law("fuse-attention", "fuse-attention-with-mask", over=_MASKS)
def fuse_attention(masked: bool, q: Queries, v: Values, m: Mask, k: TurnedKeys, s: Factor) -> Rewrite:
    """The pieces of attention (Vaswani et al., 2017, section 3.2.1); exporters leave the keys transposed.

    A mask is added to the scores, as the positions of T5 are. It may hide no row altogether: of such a row, ONNX
    Runtime's Attention makes zeros, and its Softmax the mean or no number.
    """
    masks = [m] if masked else []
    return Rewrite(
        weighted(Mul(MatMul(q, k), s), v, masks),
        Attention(q, turned(k), v, *masks, scale=s),
        where=[*(mask.is_bounded for mask in masks), *are_not_empty(q, k, v)],
    )


@law("fuse-scaled-attention", "fuse-scaled-attention-with-mask", over=_MASKS)
def fuse_scaled_attention(masked: bool, q: Queries, v: Values, m: Mask, k: TurnedKeys) -> Rewrite:
    """The pieces of attention where queries or keys were scaled before, so that the scale is one."""
    masks = [m] if masked else []
    return Rewrite(
        weighted(MatMul(q, k), v, masks),
        Attention(q, turned(k), v, *masks, scale=1.0),
        where=[*(mask.is_bounded for mask in masks), *are_not_empty(q, k, v)],
    )


@law("unfuse-attention", "unfuse-attention-with-mask", over=_MASKS)
def unfuse_attention(masked: bool, q: Queries, v: Values, m: Mask, k: Keys, s: Factor) -> Rewrite:
    """Attention in pieces."""
    masks = [m] if masked else []
    pieces = weighted(Mul(MatMul(q, turned(k)), s), v, masks)
    return Rewrite(Attention(q, k, v, *masks, scale=s), pieces, where=[mask.is_bounded for mask in masks])


@false_control("attention-hides-rows-alike", of="fuse-attention-with-mask")
def attention_hides_rows_alike(q: Queries, v: Values, m: Mask, k: TurnedKeys, s: Factor) -> Rewrite:
    """False: of a row that is hidden altogether, the operator makes zeros, and its pieces the mean."""
    pieces = weighted(Mul(MatMul(q, k), s), v, [m])
    return Rewrite(pieces, Attention(q, turned(k), v, m, scale=s), where=are_not_empty(q, k, v))


@false_control("attention-to-nothing", of="fuse-attention")
def attention_to_nothing(q: Queries, v: Values, k: TurnedKeys, s: Factor) -> Rewrite:
    """False: the operator fails where there are no tokens, and its pieces do not."""
    return Rewrite(weighted(Mul(MatMul(q, k), s), v, []), Attention(q, turned(k), v, scale=s))


@false_control("attention-without-its-scale", of="unfuse-attention-with-mask")
def attention_without_its_scale(q: Heads, k: Heads, v: Heads, m: SquareMask, s: Factor) -> Rewrite:
    """False: the scores would have to be scaled."""
    return Rewrite(Attention(q, k, v, m, scale=s), weighted(MatMul(q, turned(k)), v, [m]))


@false_control("attention-without-its-mask", of="unfuse-attention-with-mask")
def attention_without_its_mask(q: Heads, k: Heads, v: Heads, m: SquareMask, s: Factor) -> Rewrite:
    """False: the mask would have to be added."""
    return Rewrite(Attention(q, k, v, m, scale=s), weighted(Mul(MatMul(q, turned(k)), s), v, []))


@false_control("attention-that-scales-its-mask", of="unfuse-attention-with-mask")
def attention_that_scales_its_mask(q: Heads, k: Heads, v: Heads, m: SquareMask, s: Factor) -> Rewrite:
    """False: the mask is added after the scores are scaled."""
    masked = Add(MatMul(q, turned(k)), m)
    return Rewrite(Attention(q, k, v, m, scale=s), weighted(Mul(masked, s), v, []))


@false_control("attention-of-turned-keys", of="unfuse-attention-with-mask")
def attention_of_turned_keys(q: Heads, k: Heads, v: Heads, m: SquareMask, s: Factor) -> Rewrite:
    """False: the keys would have to be transposed; as many positions as features hide that."""
    return Rewrite(Attention(q, k, v, m, scale=s), weighted(Mul(MatMul(q, k), s), v, [m]))
