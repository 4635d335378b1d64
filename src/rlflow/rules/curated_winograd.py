"""Declared rules that trade products for sums: true at all even sizes, worth their sums at large ones alone.

A product of matrices by seven products of their quarters (Strassen, 1969, with Winograd's fifteen sums).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rlflow.rules import pattern
from rlflow.rules.rule import Rule, declare

_LINEAR = "linear"
_LAST = -1
_ROWS = -2

_Term = Any


def _even(number: Any) -> Any:
    return ["==", ["*", 2, ["/", number, 2]], number]


def _add(a: _Term, b: _Term) -> _Term:
    return ["Add", a, b]


def _sub(a: _Term, b: _Term) -> _Term:
    return ["Sub", a, b]


def _parts(x: _Term, axis: int, *sizes: Any) -> list[_Term]:
    return [["@", i, ["Split", {"axis": axis, "split": ["list", *sizes]}, x]] for i in range(len(sizes))]


def _join(axis: int, *parts: _Term) -> _Term:
    return ["Concat", {"axis": axis}, *parts]


def _quarters(name: str) -> list[_Term]:
    """Row by row."""
    rows, columns = (["/", ["dim", name, axis], 2] for axis in (_ROWS, _LAST))
    return [part for half in _parts(name, _ROWS, rows, rows) for part in _parts(half, _LAST, columns, columns)]


_LEAST_SIDE = 1024
"""Below it a product of matrices is computed faster than its quarters are summed."""


def _seven_products() -> Rule:
    a11, a12, a21, a22 = _quarters("a")
    b11, b12, b21, b22 = _quarters("b")
    s1, t1 = _add(a21, a22), _sub(b12, b11)
    s2, t2 = _sub(s1, a11), _sub(b22, t1)
    left = (a11, a12, _sub(a12, s2), a22, s1, s2, _sub(a11, a21))
    right = (b11, b21, b22, _sub(t2, b21), t1, t2, _sub(b22, b12))
    p1, p2, p3, p4, p5, p6, p7 = (["MatMul", x, y] for x, y in zip(left, right, strict=True))
    u2 = _add(p1, p6)
    u3 = _add(u2, p7)
    upper = _join(_LAST, _add(p1, p2), _add(_add(u2, p5), p3))
    lower = _join(_LAST, _sub(u3, p4), _add(u3, p5))
    sides = [["dim", "a", 0], ["dim", "a", 1], ["dim", "b", 1]]
    return declare(
        "product-by-seven-products",
        _LINEAR,
        [["MatMul", "a", "b"]],
        [_join(_ROWS, upper, lower)],
        {"a": {"shape": ["m", "k"]}, "b": {"shape": ["k", "n"], "constant": True}},
        where=[_even(side) for side in sides],
        worth=[["<=", _LEAST_SIDE, side] for side in sides],
    )


def winograd_rules() -> list[Rule]:
    """All of them, without certificates."""
    return [_seven_products()]


def _with(rule: Rule, name: str, op: str, other: str) -> Rule:
    """The rule with another operator wherever its target has this one."""

    def change(part: pattern.Term) -> pattern.Term:
        return replace(part, op=other) if isinstance(part, pattern.Apply) and part.op == op else part

    target = tuple(pattern.rebuilt(term, change) for term in rule.target)
    return replace(rule, name=name, family="control", target=target)


def false_winograd_controls() -> list[Rule]:
    """The same with a sign lost."""
    return [_with(_seven_products(), "seven-products-without-signs", "Sub", "Add")]
