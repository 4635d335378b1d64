"""From and to operators of com.microsoft.

Rules that write one fire where the model imports that domain already: it has been through ONNX Runtime's own fusions,
which these rules undo, move or complete. An example is `fuse-scale-of-product`.
"""

from __future__ import annotations

from typing import Annotated

from rlflow.rules.declared.fused import error_function_of_quotient, half_of_all
from rlflow.rules.dsl import (
    Attribute,
    Attributes,
    Choice,
    OperatorConstructor,
    Rewrite,
    Shape,
    Tensor,
    Together,
    Uniform,
    Value,
    false_control,
    law,
    microsoft,
    rule,
    rules,
)
from rlflow.rules.dsl.operators import (
    Add,
    Conv,
    Gelu,
    Gemm,
    LayerNormalization,
    MatMul,
    Mul,
    Relu,
    RMSNormalization,
    Sigmoid,
    Transpose,
)
from rlflow.rules.dsl.vocabulary import Factor, FilterBias, Filters, GroupedWindow, Image, OnOff, Row, Rows, Square

FAMILY = "microsoft"

Left = Annotated[Tensor, Shape("...a i j")]
Right = Annotated[Tensor, Shape("...b k l")]
LastTwoSwapped = Annotated[Attribute, Choice([1, 0], [0, 2, 1], [0, 1, 3, 2])]


@rule("fuse-product", "unfuse-product")
def fuse_product(a: Left, b: Right) -> Rewrite:
    """A product by its other name."""
    return Rewrite(MatMul(a, b), microsoft.FusedMatMul(a, b))


@rule("fuse-scale-of-product")
def fuse_scale_of_product(a: Left, b: Right, alpha: Factor) -> Rewrite:
    """A factor of a product as its alpha."""
    return Rewrite(Mul(MatMul(a, b), alpha), microsoft.FusedMatMul(a, b, alpha=alpha))


@rule("fuse-scale-of-fused-product")
def fuse_scale_of_fused_product(a: Left, b: Right, alpha: Factor, left: OnOff, right: OnOff) -> Rewrite:
    """A factor of a product of transposed operands as its alpha."""
    return Rewrite(
        Mul(microsoft.FusedMatMul(a, b, transA=left, transB=right), alpha),
        microsoft.FusedMatMul(a, b, transA=left, transB=right, alpha=alpha),
    )


@rule("unfuse-scale-of-product")
def unfuse_scale_of_product(a: Left, b: Right, alpha: Factor, left: OnOff, right: OnOff) -> Rewrite:
    """A product with an alpha, as a product and a factor."""
    return Rewrite(
        microsoft.FusedMatMul(a, b, transA=left, transB=right, alpha=alpha),
        Mul(microsoft.FusedMatMul(a, b, transA=left, transB=right), alpha),
        where=[alpha != 1.0],
    )


@false_control("alpha-is-lost", of="fuse-scale-of-product")
def alpha_is_lost(a: Square, b: Square) -> Rewrite:
    """False: the factor is lost."""
    return Rewrite(Mul(MatMul(a, b), 0.5), microsoft.FusedMatMul(a, b))


_SIDES = ({"side": 0}, {"side": 1})
_FLAGS = ("transA", "transB")
"""The operands of a product, and the flags that transpose them."""


def _turned(a: Tensor, b: Tensor, side: int, p: Value) -> list[Tensor]:
    """Both operands, that of this side transposed."""
    return [Transpose(operand, perm=p) if place == side else operand for place, operand in enumerate((a, b))]


@law("fuse-transpose-of-a", "fuse-transpose-of-b", over=_SIDES)
def fuse_transpose(side: int, a: Left, b: Right, p: LastTwoSwapped) -> Rewrite:
    """A transpose of an operand as a flag."""
    fused = microsoft.FusedMatMul(a, b, **{_FLAGS[side]: 1})
    return Rewrite(MatMul(*_turned(a, b, side, p)), fused, where=[p.swaps_last_two()])


@law("fuse-transpose-of-a-of-fused-product", "fuse-transpose-of-b-of-fused-product", over=_SIDES)
def fuse_transpose_of_fused_product(
    side: int, a: Left, b: Right, p: LastTwoSwapped, alpha: Factor, other: OnOff
) -> Rewrite:
    """A transpose of an operand as a flag, beside other attributes."""
    attributes = {"alpha": alpha, _FLAGS[1 - side]: other}
    return Rewrite(
        microsoft.FusedMatMul(*_turned(a, b, side, p), **attributes),
        microsoft.FusedMatMul(a, b, **{_FLAGS[side]: 1}, **attributes),
        where=[p.swaps_last_two()],
    )


@law("unfuse-transpose-of-a", "unfuse-transpose-of-b", over=_SIDES)
def unfuse_transpose(side: int, a: Left, b: Right, alpha: Factor, other: OnOff) -> Rewrite:
    """The flag of an operand as a transpose."""
    attributes = {"alpha": alpha, _FLAGS[1 - side]: other}
    swapped = (a, b)[side].last_two_swapped()
    return Rewrite(
        microsoft.FusedMatMul(a, b, **{_FLAGS[side]: 1}, **attributes),
        microsoft.FusedMatMul(*_turned(a, b, side, swapped), **attributes),
    )


@false_control("the-other-transpose", of="fuse-transpose-of-b")
def the_other_transpose(a: Square, b: Square) -> Rewrite:
    """False: the flag is that of the wrong operand."""
    return Rewrite(MatMul(a, Transpose(b, perm=[1, 0])), microsoft.FusedMatMul(a, b, transA=1))


@rule("fuse-gelu-of-microsoft", "unfuse-gelu-of-microsoft")
def fuse_gelu_of_microsoft(x: Tensor) -> Rewrite:
    """Gelu of this domain, for models whose opset has none."""
    return Rewrite(half_of_all(x, error_function_of_quotient(x)), microsoft.Gelu(x))


@rule("gelu-of-microsoft-to-gelu")
def gelu_of_microsoft_to_gelu(x: Tensor) -> Rewrite:
    """Gelu by its other name."""
    return Rewrite(microsoft.Gelu(x), Gelu(x))


@rule("gelu-to-gelu-of-microsoft")
def gelu_to_gelu_of_microsoft(x: Tensor) -> Rewrite:
    """Gelu by its other name."""
    return Rewrite(Gelu(x), microsoft.Gelu(x))


@rule("fuse-bias-of-gelu", "unfuse-bias-of-gelu")
def fuse_bias_of_gelu(x: Rows, c: Row) -> Rewrite:
    """Gelu with a bias in it."""
    return Rewrite(microsoft.Gelu(Add(x, c)), microsoft.BiasGelu(x, c))


@rule("fuse-quick-gelu", "unfuse-quick-gelu")
def fuse_quick_gelu(x: Tensor, alpha: Factor) -> Rewrite:
    """The product of x and the logistic function of a multiple of x as QuickGelu."""
    return Rewrite(Mul(x, Sigmoid(Mul(x, alpha))), microsoft.QuickGelu(x, alpha=alpha))


@rule("fuse-swish", "unfuse-swish")
def fuse_swish(x: Tensor) -> Rewrite:
    """The product of x and its logistic function as QuickGelu with a factor of one."""
    return Rewrite(Mul(x, Sigmoid(x)), microsoft.QuickGelu(x, alpha=1.0))


@false_control("a-quick-gelu-is-gelu", of="fuse-quick-gelu")
def a_quick_gelu_is_gelu(x: Annotated[Tensor, Shape("m n")]) -> Rewrite:
    """False: QuickGelu is near Gelu, but another function."""
    return Rewrite(microsoft.QuickGelu(x), microsoft.Gelu(x))


_LAYER_NORM = {"norm": LayerNormalization, "fused": microsoft.SkipLayerNormalization, "shift": True}
_RMS_NORM = {"norm": RMSNormalization, "fused": microsoft.SkipSimplifiedLayerNormalization, "shift": False}


@rules(
    {
        ("fuse-residual-of-LayerNormalization", "unfuse-residual-of-LayerNormalization"): {
            **_LAYER_NORM,
            "bias": False,
        },
        ("fuse-residual-of-LayerNormalization-with-bias", "unfuse-residual-of-LayerNormalization-with-bias"): {
            **_LAYER_NORM,
            "bias": True,
        },
        ("fuse-residual-of-RMSNormalization", "unfuse-residual-of-RMSNormalization"): {**_RMS_NORM, "bias": False},
        ("fuse-residual-of-RMSNormalization-with-bias", "unfuse-residual-of-RMSNormalization-with-bias"): {
            **_RMS_NORM,
            "bias": True,
        },
    }
)
def fuse_residual(
    norm: OperatorConstructor,
    fused: OperatorConstructor,
    shift: bool,
    bias: bool,
    x: Rows,
    y: Rows,
    g: Row,
    c: Row,
    d: Row,
    e: Factor,
) -> Rewrite:
    """The residual sum before a normalisation, and a bias of it, inside the normalisation."""
    weights = [g, c] if shift else [g]
    residual = Add(Add(x, d), y) if bias else Add(x, y)
    return Rewrite(norm(residual, *weights, epsilon=e), fused(x, y, *weights, *([d] if bias else []), epsilon=e))


@false_control("the-residual-is-lost", of="fuse-residual-of-LayerNormalization")
def the_residual_is_lost(
    x: Annotated[Tensor, Shape("m n")], y: Annotated[Tensor, Shape("m n")], g: Row, c: Row
) -> Rewrite:
    """False: the residual is lost."""
    return Rewrite(microsoft.SkipLayerNormalization(x, y, g, c, epsilon=0.5), LayerNormalization(x, g, c, epsilon=0.5))


GemmFactors = Annotated[
    Attributes,
    Together(
        alpha=("alpha", Uniform()),
        beta=("beta", Uniform()),
        transA=("left", Choice(0, 1)),
        transB=("right", Choice(0, 1)),
    ),
]
OneMatrix = Annotated[Tensor, Shape("i j")]
OtherMatrix = Annotated[Tensor, Shape("k l")]


_CONVOLUTION = {
    **{"op": Conv, "fused": microsoft.FusedConv},
    **{"x": Image, "f": Filters, "b": FilterBias, "attributes": GroupedWindow},
}
_GEMM = {
    **{"op": Gemm, "fused": microsoft.FusedGemm},
    **{"x": OneMatrix, "f": OtherMatrix, "attributes": GemmFactors},
}


@rules(
    {
        ("fuse-relu-of-convolution", "unfuse-relu-of-convolution"): {**_CONVOLUTION, "bias": False},
        ("fuse-relu-of-gemm", "unfuse-relu-of-gemm"): {**_GEMM, "bias": False},
        ("fuse-relu-of-convolution-with-bias", "unfuse-relu-of-convolution-with-bias"): {**_CONVOLUTION, "bias": True},
        ("fuse-relu-of-gemm-with-bias", "unfuse-relu-of-gemm-with-bias"): {**_GEMM, "bias": True},
    }
)
def fuse_relu(
    op: OperatorConstructor,
    fused: OperatorConstructor,
    bias: bool,
    x: Tensor,
    f: Tensor,
    b: Tensor,
    attributes: Attributes,
) -> Rewrite:
    """The positive part of a convolution or of a product of matrices, taken where it is made."""
    operands = [x, f, b] if bias else [x, f]
    return Rewrite(Relu(op(*operands, **attributes)), fused(*operands, **attributes, activation="Relu"))


@false_control("relu-comes-before", of="fuse-relu-of-gemm")
def relu_comes_before(a: Square, b: Square) -> Rewrite:
    """False: the positive part of an operand is not that of the product."""
    return Rewrite(microsoft.FusedGemm(a, b, alpha=0.5, activation="Relu"), Gemm(Relu(a), b, alpha=0.5))
