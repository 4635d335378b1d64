"""Declared rules from the pieces of a fused operator to the operator and back, as exporters write the pieces.

A number in a source stands for any stored scalar of that value up to a rounding of float32: sqrt(2) is written as what
it is, so that the verifier knows it, while a model holds 1.4142135.
"""

from __future__ import annotations

from typing import Any

from rlflow.ops.fused import TANH_GELU_CUBIC, TANH_GELU_SLOPE
from rlflow.rules.rule import Rule, declare

_FAMILY = "fused"


def _number(value: float | str) -> list[Any]:
    return ["Constant", {"value_float": value}]


_SQRT_2 = ["Sqrt", _number(2.0)]


def _gated(gate: Any) -> dict[str, Any]:
    """x (1 + gate) / 2 in the orders of its factors."""
    raised = ["Add", gate, _number(1.0)]
    return {
        "half-of-all": ["Mul", ["Mul", "x", raised], _number(0.5)],
        "half-of-x": ["Mul", ["Mul", "x", _number(0.5)], raised],
        "half-of-gate": ["Mul", "x", ["Mul", raised, _number(0.5)]],
    }


def _gelu_rules() -> list[Rule]:
    """Hendrycks and Gimpel, 2016: by the error function, divided by a root or multiplied by its reciprocal, and by a
    hyperbolic tangent of a cubic.
    """
    gates = {
        ("none", "quotient"): ["Erf", ["Div", "x", _SQRT_2]],
        ("none", "product"): ["Erf", ["Mul", "x", ["Reciprocal", _SQRT_2]]],
    }
    cubes = {"power": ["Pow", {"exponent": 3.0}, "x"], "product": ["Mul", "x", ["Mul", "x", "x"]]}
    for name, cube in cubes.items():
        inner = ["Add", "x", ["Mul", cube, _number(TANH_GELU_CUBIC)]]
        gates["tanh", name] = ["Tanh", ["Mul", inner, _number(TANH_GELU_SLOPE)]]
    fused = {
        (kind, form, order): declare(
            f"fuse-{'gelu' if kind == 'none' else 'tanh-gelu'}-of-{form}-{order}",
            _FAMILY,
            [pieces],
            [["Gelu", {"approximate": kind}, "x"]],
        )
        for (kind, form), gate in gates.items()
        for order, pieces in _gated(gate).items()
    }
    return [
        *fused.values(),
        fused["none", "quotient", "half-of-all"].reversed("unfuse-gelu"),
        fused["tanh", "power", "half-of-x"].reversed("unfuse-tanh-gelu"),
    ]


def fused_rules() -> list[Rule]:
    """All declared rules of this file, without certificates."""
    return [*_gelu_rules()]


def _false_gelus() -> list[Rule]:
    gelu, tanh = (["Gelu", {"approximate": kind}, "x"] for kind in ("none", "tanh"))

    def by_error_function(root: Any) -> list[Any]:
        return ["Mul", ["Mul", "x", ["Add", ["Erf", ["Div", "x", root]], _number(1.0)]], _number(0.5)]

    return [
        declare("gelu-of-a-rounded-root", "control", [by_error_function(_number(1.41))], [gelu]),
        declare("gelu-without-its-half", "control", [by_error_function(_SQRT_2)[1]], [gelu]),
        declare("gelu-by-tanh-is-gelu", "control", [tanh], [gelu]),
        declare("pieces-of-gelu-are-of-tanh", "control", [by_error_function(_SQRT_2)], [tanh]),
    ]


def false_fused_controls() -> list[Rule]:
    """Mistakes that are easily made with fused operators."""
    return [*_false_gelus()]
