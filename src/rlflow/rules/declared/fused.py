"""Declared rules from the pieces of a fused operator to the operator and back, as exporters write the pieces.

A number in a source stands for any stored scalar of that value up to a rounding of float32: sqrt(2) is written as what
it is, so that the verifier knows it, while a model holds 1.4142135.
"""

from __future__ import annotations

from typing import Any

from rlflow.ops.fused import TANH_GELU_CUBIC, TANH_GELU_SLOPE
from rlflow.rules.rule import Rule, declare

_FAMILY = "fused"


def number(value: float | str) -> list[Any]:
    return ["Constant", {"value_float": value}]


SQRT_2 = ["Sqrt", number(2.0)]


def gated(gate: Any) -> dict[str, Any]:
    """x (1 + gate) / 2 in the orders of its factors."""
    raised = ["Add", gate, number(1.0)]
    return {
        "half-of-all": ["Mul", ["Mul", "x", raised], number(0.5)],
        "half-of-x": ["Mul", ["Mul", "x", number(0.5)], raised],
        "half-of-gate": ["Mul", "x", ["Mul", raised, number(0.5)]],
    }


def _gelu_rules() -> list[Rule]:
    """Hendrycks and Gimpel, 2016: by the error function, divided by a root or multiplied by its reciprocal, and by a
    hyperbolic tangent of a cubic.

    No half of x comes out of one that comes apart: two Gelus of one x would have it in common, and ONNX Runtime 1.31
    then makes a model of their pieces that it refuses itself.
    """
    gates = {
        ("none", "quotient"): ["Erf", ["Div", "x", SQRT_2]],
        ("none", "product"): ["Erf", ["Mul", "x", ["Reciprocal", SQRT_2]]],
    }
    cubes = {"power": ["Pow", {"exponent": 3.0}, "x"], "product": ["Mul", "x", ["Mul", "x", "x"]]}
    for name, cube in cubes.items():
        inner = ["Add", "x", ["Mul", cube, number(TANH_GELU_CUBIC)]]
        gates["tanh", name] = ["Tanh", ["Mul", inner, number(TANH_GELU_SLOPE)]]
    fused = {
        (kind, form, order): declare(
            f"fuse-{'gelu' if kind == 'none' else 'tanh-gelu'}-of-{form}-{order}",
            _FAMILY,
            [pieces],
            [["Gelu", {"approximate": kind}, "x"]],
        )
        for (kind, form), gate in gates.items()
        for order, pieces in gated(gate).items()
    }
    return [
        *fused.values(),
        fused["none", "quotient", "half-of-all"].reversed("unfuse-gelu"),
        fused["tanh", "power", "half-of-all"].reversed("unfuse-tanh-gelu"),
    ]


_EPSILON = {"?e": ["uniform"]}
_ROWS = {"x": {"shape": ["...b", "n"]}, "g": {"shape": ["n"]}, "c": {"shape": ["n"]}}


def _mean(x: Any) -> list[Any]:
    return ["ReduceMean", {"axes": [-1], "keepdims": 1}, x]


def _root(square: Any) -> list[Any]:
    """Of the mean square of each row, and of epsilon with it."""
    return ["Sqrt", ["Add", _mean(square), number("?e")]]


def _normalisation_rules() -> list[Rule]:
    """Zhang and Sennrich, 2019, in the spellings of its square and its quotient; and the pieces of its older sister."""
    squares = {"power": ["Pow", {"exponent": 2.0}, "x"], "product": ["Mul", "x", "x"]}
    fused = {}
    for form, square in squares.items():
        root = _root(square)
        normal = {
            "quotient": ["Div", "x", root],
            "reciprocal": ["Mul", "x", ["Reciprocal", root]],
            "inverse": ["Mul", "x", ["Div", number(1.0), root]],
        }
        for order, pieces in normal.items():
            fused[form, order] = declare(
                f"fuse-rms-norm-of-{form}-{order}",
                _FAMILY,
                [["Mul", pieces, "g"]],
                [["RMSNormalization", {"epsilon": "?e"}, "x", "g"]],
                {k: _ROWS[k] for k in "xg"},
                attributes=_EPSILON,
            )
    centred = ["Sub", "x", _mean("x")]
    layer = declare(
        "unfuse-layer-norm",
        _FAMILY,
        [["LayerNormalization", {"epsilon": "?e"}, "x", "g", "c"]],
        [["Add", ["Mul", ["Div", centred, _root(["Pow", {"exponent": 2.0}, centred])], "g"], "c"]],
        _ROWS,
        attributes=_EPSILON,
    )
    return [*fused.values(), fused["power", "reciprocal"].reversed("unfuse-rms-norm"), layer]


_HEADS = {"q": {"shape": ["b", "h", "t", "d"]}, "v": {"shape": ["b", "h", "s", "e"]}}
_KEYS = {"shape": ["b", "h", "s", "d"]}
_TURNED_KEYS = {"shape": ["b", "h", "d", "s"]}
_MASK = {"m": {"shape": ["...m", "t", "s"]}}
_TURN = {"perm": [0, 1, 3, 2]}


def _weighted(scores: Any, masks: list[str]) -> list[Any]:
    """The values, weighted by the scores."""
    for mask in masks:
        scores = ["Add", scores, mask]
    return ["MatMul", ["Softmax", scores], "v"]


def _attention_rules(masks: list[str]) -> list[Rule]:
    """Vaswani et al., 2017, section 3.2.1. Keys come transposed, as an exporter leaves them; whoever scaled queries or
    keys before their product needs no scale. Divisions are made products by a rule of their own.
    """
    suffix = "-with-mask" if masks else ""
    scale = {"?s": ["uniform"]}
    keys = ["Transpose", _TURN, "k"]
    variables = _HEADS | (_MASK if masks else {})
    scores = ["MatMul", "q", "k"]
    return [
        declare(
            f"fuse-attention{suffix}",
            _FAMILY,
            [_weighted(["Mul", scores, number("?s")], masks)],
            [["Attention", {"scale": "?s"}, "q", keys, "v", *masks]],
            {**variables, "k": _TURNED_KEYS},
            attributes=scale,
        ),
        declare(
            f"fuse-scaled-attention{suffix}",
            _FAMILY,
            [_weighted(scores, masks)],
            [["Attention", {"scale": 1.0}, "q", keys, "v", *masks]],
            {**variables, "k": _TURNED_KEYS},
        ),
        declare(
            f"unfuse-attention{suffix}",
            _FAMILY,
            [["Attention", {"scale": "?s"}, "q", "k", "v", *masks]],
            [_weighted(["Mul", ["MatMul", "q", keys], number("?s")], masks)],
            {**variables, "k": _KEYS},
            attributes=scale,
        ),
    ]


def fused_rules() -> list[Rule]:
    """All declared rules of this file, without certificates."""
    return [*_gelu_rules(), *_normalisation_rules(), *(r for masks in ([], ["m"]) for r in _attention_rules(masks))]


def _false_gelus() -> list[Rule]:
    gelu, tanh = (["Gelu", {"approximate": kind}, "x"] for kind in ("none", "tanh"))

    def by_error_function(root: Any) -> list[Any]:
        return ["Mul", ["Mul", "x", ["Add", ["Erf", ["Div", "x", root]], number(1.0)]], number(0.5)]

    return [
        declare("gelu-of-a-rounded-root", "control", [by_error_function(number(1.41))], [gelu]),
        declare("gelu-without-its-half", "control", [by_error_function(SQRT_2)[1]], [gelu]),
        declare("gelu-by-tanh-is-gelu", "control", [tanh], [gelu]),
        declare("pieces-of-gelu-are-of-tanh", "control", [by_error_function(SQRT_2)], [tanh]),
    ]


def _false_normalisations() -> list[Rule]:
    rms = [["RMSNormalization", {"epsilon": "?e"}, "x", "g"]]
    square = ["Mul", "x", "x"]
    total = ["ReduceSum", {"axes": [-1], "keepdims": 1}, square]
    outside = ["Add", ["Sqrt", _mean(square)], number("?e")]
    wrong = {
        "rms-norm-is-layer-norm": ["LayerNormalization", {"epsilon": "?e"}, "x", "g"],
        "rms-norm-of-a-sum": ["Mul", ["Div", "x", ["Sqrt", ["Add", total, number("?e")]]], "g"],
        "rms-norm-with-epsilon-outside": ["Mul", ["Div", "x", outside], "g"],
        "rms-norm-without-a-root": ["Mul", ["Div", "x", _root(square)[1]], "g"],
    }
    return [
        declare(name, "control", [pieces], rms, {k: _ROWS[k] for k in "xg"}, attributes=_EPSILON)
        for name, pieces in wrong.items()
    ]


def _false_attentions() -> list[Rule]:
    square = {"shape": ["b", "h", "t", "t"]}
    variables = {**dict.fromkeys("qkv", square), "m": {"shape": ["t", "t"]}}
    attention = ["Attention", {"scale": "?s"}, "q", "k", "v", "m"]
    scores = ["MatMul", "q", ["Transpose", _TURN, "k"]]
    wrong = {
        "attention-without-its-scale": _weighted(scores, ["m"]),
        "attention-without-its-mask": _weighted(["Mul", scores, number("?s")], []),
        "attention-that-scales-its-mask": _weighted(["Mul", ["Add", scores, "m"], number("?s")], []),
        "attention-of-turned-keys": _weighted(["Mul", ["MatMul", "q", "k"], number("?s")], ["m"]),
    }
    return [
        declare(name, "control", [attention], [pieces], variables, attributes={"?s": ["uniform"]})
        for name, pieces in wrong.items()
    ]


def false_fused_controls() -> list[Rule]:
    """Mistakes that are easily made with fused operators."""
    return [*_false_gelus(), *_false_normalisations(), *_false_attentions()]
