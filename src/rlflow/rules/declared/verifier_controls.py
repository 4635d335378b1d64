"""False rules about no rule in particular, each wrong in a way that a weak verifier overlooks.

`products-commute` is right for square matrices that are diagonal, `sqrt-is-even` wherever both sides are defined, and
`detour-by-a-difference` but for rounding. All must be refused in every run.
"""

from __future__ import annotations

from typing import Annotated

from rlflow.rules.dsl import Rewrite, Shape, Tensor, false_control
from rlflow.rules.dsl.operators import Add, Clip, Div, Exp, MatMul, Mul, Reciprocal, Relu, Softmax, Sqrt, Sub
from rlflow.rules.dsl.vocabulary import Square


@false_control("products-commute")
def products_commute(a: Square, b: Square) -> Rewrite:
    """False: products of matrices do not commute, though both are square."""
    return Rewrite(MatMul(a, b), MatMul(b, a))


@false_control("exp-is-additive")
def exp_is_additive(a: Square, b: Square) -> Rewrite:
    """False: the exponential of a sum is a product."""
    return Rewrite(Exp(Add(a, b)), Add(Exp(a), Exp(b)))


@false_control("relu-distributes")
def relu_distributes(a: Square, b: Square) -> Rewrite:
    """False: this is right only where both addends have one sign."""
    return Rewrite(Relu(Add(a, b)), Add(Relu(a), Relu(b)))


@false_control("relu-passes-product")
def relu_passes_product(a: Square, b: Square) -> Rewrite:
    """False: this is right only where the right operand has no negative elements."""
    return Rewrite(MatMul(Relu(a), Relu(b)), Relu(MatMul(Relu(a), b)))


@false_control("sqrt-is-even")
def sqrt_is_even(a: Square, b: Square) -> Rewrite:
    """False: both sides are defined only where the operands are equal."""
    return Rewrite(Sqrt(Sub(a, b)), Sqrt(Sub(b, a)))


@false_control("reciprocal-passes-relu")
def reciprocal_passes_relu(a: Square) -> Rewrite:
    """False: of numbers that are not positive, one side is infinite."""
    return Rewrite(Reciprocal(Relu(a)), Relu(Reciprocal(a)))


@false_control("clip-passes-relu")
def clip_passes_relu(a: Square) -> Rewrite:
    """False: the bounds are negative, so that one side is zero."""
    return Rewrite(Relu(Clip(a, min=-2.0, max=-1.0)), Clip(Relu(a), min=-2.0, max=-1.0))


@false_control("exp-comes-apart")
def exp_comes_apart(a: Square, b: Square) -> Rewrite:
    """False in floats: a factor may overflow where the product does not."""
    return Rewrite(Exp(Add(a, b)), Mul(Exp(a), Exp(b)))


@false_control("detour-by-a-difference")
def detour_by_a_difference(a: Square, b: Square) -> Rewrite:
    """False at zero, and far less accurate where magnitudes differ."""
    return Rewrite(Div(Mul(a, b), a), Add(a, Sub(b, a)))


@false_control("one-is-a-quotient")
def one_is_a_quotient(a: Annotated[Tensor, Shape("m 1")]) -> Rewrite:
    """False at zero, where the quotient is undefined."""
    return Rewrite(Softmax(a), Div(a, a))
