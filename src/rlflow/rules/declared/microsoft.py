"""Declared rules from and to operators of com.microsoft. Those that write one fire where the model imports that domain
already: it has been through ONNX Runtime's own fusions, which these rules undo, move or complete.
"""

from __future__ import annotations

from typing import Any

from rlflow.rules.declared.fused import SQRT_2, gated, number
from rlflow.rules.rule import Rule, declare

_FAMILY = "microsoft"
_UNIFORM = ["uniform"]
_FLAG = ["choice", 0, 1]


def _microsoft(kind: str, *arguments: Any) -> list[Any]:
    return [f"com.microsoft.{kind}", *arguments]


def _both_ways(name: str, pieces: Any, fused: Any, variables: Any = None, **rest: Any) -> list[Rule]:
    rule = declare(f"fuse-{name}", _FAMILY, [pieces], [fused], variables, **rest)
    return [rule, rule.reversed(f"unfuse-{name}")]


_MATRICES = {"a": {"shape": ["...a", "i", "j"]}, "b": {"shape": ["...b", "k", "l"]}}


def _product(a: Any, b: Any, **attributes: Any) -> list[Any]:
    return _microsoft("FusedMatMul", attributes, a, b)


def _scale_rules() -> list[Rule]:
    """A factor of a product as its alpha."""
    turns = {"transA": "?left", "transB": "?right"}
    scaled = _product("a", "b", alpha="?alpha", **turns)
    apart = ["Mul", _product("a", "b", **turns), number("?alpha")]
    flags = {"?alpha": _UNIFORM, "?left": _FLAG, "?right": _FLAG}
    return [
        *_both_ways("product", ["MatMul", "a", "b"], _product("a", "b"), _MATRICES),
        declare(
            "fuse-scale-of-product",
            _FAMILY,
            [["Mul", ["MatMul", "a", "b"], number("?alpha")]],
            [_product("a", "b", alpha="?alpha")],
            _MATRICES,
            attributes={"?alpha": _UNIFORM},
        ),
        declare("fuse-scale-of-fused-product", _FAMILY, [apart], [scaled], _MATRICES, attributes=flags),
        declare(
            "unfuse-scale-of-product",
            _FAMILY,
            [scaled],
            [apart],
            _MATRICES,
            attributes=flags,
            where=[["!=", "?alpha", 1.0]],
        ),
    ]


def _turn_rules(side: str, flag: str, other: str) -> list[Rule]:
    """A transpose of one operand of a product as its flag."""
    rest = {"alpha": "?alpha", other: "?other"}
    plain = {"?p": ["choice", [1, 0], [0, 2, 1], [0, 1, 3, 2]]}
    drawn = {"?alpha": _UNIFORM, "?other": _FLAG}

    def operands(perm: Any) -> list[Any]:
        return [["Transpose", {"perm": perm}, v] if v == side else v for v in "ab"]

    turned = {"where": [["swaps_last_two", "?p"]]}
    name = f"transpose-of-{side}"
    return [
        declare(
            f"fuse-{name}",
            _FAMILY,
            [["MatMul", *operands("?p")]],
            [_product("a", "b", **{flag: 1})],
            _MATRICES,
            attributes=plain,
            **turned,
        ),
        declare(
            f"fuse-{name}-of-fused-product",
            _FAMILY,
            [_product(*operands("?p"), **rest)],
            [_product("a", "b", **{flag: 1}, **rest)],
            _MATRICES,
            attributes={**plain, **drawn},
            **turned,
        ),
        declare(
            f"unfuse-{name}",
            _FAMILY,
            [_product("a", "b", **{flag: 1}, **rest)],
            [_product(*operands(["last_two_swapped", ["rank", side]]), **rest)],
            _MATRICES,
            attributes=drawn,
        ),
    ]


_ROWS = {"shape": ["...b", "n"]}
_ROW = {"shape": ["n"]}


def _gelu_rules() -> list[Rule]:
    """Gelu of this domain, for models whose opset has none, with a bias in it, and as a logistic function."""
    gelu = _microsoft("Gelu", "x")
    pieces = gated(["Erf", ["Div", "x", SQRT_2]])["half-of-all"]
    quick = ["Mul", "x", ["Sigmoid", ["Mul", "x", number("?alpha")]]]
    return [
        *_both_ways("gelu-of-microsoft", pieces, gelu),
        declare("gelu-of-microsoft-to-gelu", _FAMILY, [gelu], [["Gelu", "x"]]),
        declare("gelu-to-gelu-of-microsoft", _FAMILY, [["Gelu", "x"]], [gelu]),
        *_both_ways(
            "bias-of-gelu",
            _microsoft("Gelu", ["Add", "x", "c"]),
            _microsoft("BiasGelu", "x", "c"),
            {"x": _ROWS, "c": _ROW},
        ),
        *_both_ways(
            "quick-gelu", quick, _microsoft("QuickGelu", {"alpha": "?alpha"}, "x"), attributes={"?alpha": _UNIFORM}
        ),
        *_both_ways("swish", ["Mul", "x", ["Sigmoid", "x"]], _microsoft("QuickGelu", {"alpha": 1.0}, "x")),
    ]


def _residual_rules() -> list[Rule]:
    """The residual sum, and the bias before it, inside the normalisation behind it."""
    epsilon = {"epsilon": "?e"}
    rules = []
    for kind, skip, parameters in (
        ("LayerNormalization", "SkipLayerNormalization", "gc"),
        ("RMSNormalization", "SkipSimplifiedLayerNormalization", "g"),
    ):
        for bias, total in {"": ["Add", "x", "y"], "d": ["Add", ["Add", "x", "d"], "y"]}.items():
            rules += _both_ways(
                f"residual-of-{kind}{'-with-bias' if bias else ''}",
                [kind, epsilon, total, *parameters],
                _microsoft(skip, epsilon, "x", "y", *parameters, *bias),
                dict.fromkeys("xy", _ROWS) | dict.fromkeys([*parameters, *bias], _ROW),
                attributes={"?e": _UNIFORM},
            )
    return rules


def _relu_rules() -> list[Rule]:
    """The positive part of a convolution or of a product with bias, taken where it is made."""
    window = {"strides": "?s", "pads": "?p", "dilations": "?d", "group": "?g"}
    image, filters = {"shape": ["n", "c", "h", "w"]}, {"shape": ["m", "k", "p", "q"]}
    integers = {"?s": ["integers", 1, 2, 2], "?p": ["integers", 0, 2, 4], "?d": ["integers", 1, 2, 2]}
    linear = {"alpha": "?alpha", "beta": "?beta", "transA": "?left", "transB": "?right"}
    relu = {"activation": "Relu"}
    rules = []
    for bias in ([], ["b"]):
        suffix = "-with-bias" if bias else ""
        rules += _both_ways(
            f"relu-of-convolution{suffix}",
            ["Relu", ["Conv", window, "x", "f", *bias]],
            _microsoft("FusedConv", {**window, **relu}, "x", "f", *bias),
            {"x": image, "f": filters, **({"b": {"shape": ["m"]}} if bias else {})},
            attributes={**integers, "?g": ["groups", "x", "f"]},
        )
        rules += _both_ways(
            f"relu-of-gemm{suffix}",
            ["Relu", ["Gemm", linear, "x", "f", *bias]],
            _microsoft("FusedGemm", {**linear, **relu}, "x", "f", *bias),
            {"x": {"shape": ["i", "j"]}, "f": {"shape": ["k", "l"]}},
            attributes={"?alpha": _UNIFORM, "?beta": _UNIFORM, "?left": _FLAG, "?right": _FLAG},
        )
    return rules


def microsoft_rules() -> list[Rule]:
    """All declared rules of this file, without certificates."""
    return [
        *_scale_rules(),
        *_turn_rules("a", "transA", "transB"),
        *_turn_rules("b", "transB", "transA"),
        *_gelu_rules(),
        *_residual_rules(),
        *_relu_rules(),
    ]


def false_microsoft_controls() -> list[Rule]:
    """Mistakes that are easily made with these operators; each is well typed."""
    square = {v: {"shape": ["n", "n"]} for v in "ab"}
    rows = {"x": {"shape": ["m", "n"]}, "y": {"shape": ["m", "n"]}, "g": _ROW, "c": _ROW}
    turned = ["Transpose", {"perm": [1, 0]}, "b"]
    gemm = {"alpha": 0.5, "activation": "Relu"}
    skip = _microsoft("SkipLayerNormalization", {"epsilon": 0.5}, "x", "y", "g", "c")
    wrong: list[tuple[str, Any, Any, Any]] = [
        ("the-other-transpose", ["MatMul", "a", turned], _product("a", "b", transA=1), square),
        ("alpha-is-lost", ["Mul", ["MatMul", "a", "b"], number(0.5)], _product("a", "b"), square),
        ("a-quick-gelu-is-gelu", _microsoft("QuickGelu", "x"), _microsoft("Gelu", "x"), {"x": rows["x"]}),
        ("the-residual-is-lost", skip, ["LayerNormalization", {"epsilon": 0.5}, "x", "g", "c"], rows),
        (
            "relu-comes-before",
            _microsoft("FusedGemm", gemm, "a", "b"),
            ["Gemm", {"alpha": 0.5}, ["Relu", "a"], "b"],
            square,
        ),
    ]
    return [declare(name, "control", [source], [target], variables) for name, source, target, variables in wrong]
