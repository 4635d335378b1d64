"""Declared rules that trade products for sums: true at all even sizes, worth their sums at large ones alone.

A product of matrices by seven products of their quarters (Strassen, 1969, with Winograd's fifteen sums), and a
convolution by 3 x 3 filters with 16 products for every 36 (Lavin and Gray, 2016, F(2 x 2, 3 x 3)).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from rlflow.rules import pattern
from rlflow.rules.rule import Rule, declare

_LINEAR = "linear"
_CONVOLUTION = "convolution"
_LAST = -1
_ROWS = -2
_TO_THE_END = 2**31 - 1

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


_IMAGE_TILE = np.array([[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]])
_FILTER_TILE = np.array([[1, 0, 0], [0.5, 0.5, 0.5], [0.5, -0.5, 0.5], [0, 0, 1]])
_RESULT_TILE = np.array([[1, 1, 1, 0], [0, 1, -1, -1]])
"""B, G and A of Lavin and Gray, section 4.1, for one axis; of both axes the transform is their Kronecker product."""

_LEAST_CHANNELS = 256
"""Below it the transforms cost more than the products that they save."""


def _reshape(x: _Term, *shape: Any) -> _Term:
    return ["Reshape", {"shape": ["list", *shape]}, x]


def _transformed(along: np.ndarray, x: _Term) -> _Term:
    """Both axes of a tile, which lie flat before all others, by this matrix."""
    matrix = np.kron(along, along).astype(float)
    numbers = ["Constant", {"value_floats": matrix.reshape(-1).tolist()}]
    return ["MatMul", _reshape(numbers, *matrix.shape), x]


def _windows(x: _Term, phase: int, axis: int) -> _Term:
    """Lines 0 to 3 of each tile (from even and odd lines): tiles lie two lines apart, and each sees two of the next."""
    seen = (
        ["Slice", {"axes": [axis], "starts": [start], "ends": [end], "steps": [1]}, x]
        for start, end in ((0, -1), (1, _TO_THE_END))
    )
    return _join(phase, *seen)


_LAID, _TURNED = (2, 3, 4, 0, 5, 1), (2, 3, 4, 1, 5, 0)
"""From (line, column, image, channel, tile, tile) to images; and with lines and columns exchanged, which is wrong."""


def _sixteen_products(bias: bool) -> Rule:
    """Tiles of the image are transformed, multiplied by the transformed filters in sixteen products, and back."""
    images, channels, filters = ["dim", "x", 0], ["dim", "x", 1], ["dim", "f", 0]
    begins, ends = ([["get", "?p", i] for i in pair] for pair in ((0, 1), (2, 3)))
    seen = [["+", ["dim", "x", 2 + i], begins[i], ends[i]] for i in (0, 1)]
    halves = [["/", size, 2] for size in seen]
    tiles = [["+", half, -1] for half in halves]
    padded = ["Pad", {"pads": ["list", 0, 0, *begins, 0, 0, *ends]}, "x"]
    phases = ["Transpose", {"perm": [3, 5, 0, 1, 2, 4]}, _reshape(padded, images, channels, halves[0], 2, halves[1], 2)]
    lines = _reshape(_windows(_windows(phases, -6, _ROWS), -5, _LAST), 16, -1)
    points = _reshape(["Transpose", {"perm": [2, 3, 0, 1]}, "f"], 9, -1)
    products = [
        "MatMul",
        _reshape(_transformed(_FILTER_TILE, points), 16, 1, filters, channels),
        _reshape(_transformed(_IMAGE_TILE, lines), 16, images, channels, -1),
    ]
    back = _reshape(_transformed(_RESULT_TILE, _reshape(products, 16, -1)), 2, 2, images, filters, *tiles)
    laid = ["Transpose", {"perm": list(_LAID)}, back]
    result = _reshape(laid, images, filters, *(["*", 2, tile] for tile in tiles))
    return declare(
        f"convolution-by-sixteen-products{'-with-bias' if bias else ''}",
        _CONVOLUTION,
        [["Conv", {"strides": [1, 1], "pads": "?p", "dilations": [1, 1]}, "x", "f", *(["b"] if bias else [])]],
        [["Add", result, _reshape("b", -1, 1, 1)] if bias else result],
        {
            "x": {"shape": ["n", "c", "h", "w"]},
            "f": {"shape": ["m", "c", 3, 3], "constant": True},
            **({"b": {"shape": ["m"], "constant": True}} if bias else {}),
        },
        attributes={"?p": ["integers", 0, 2, 4]},
        where=[_even(size) for size in seen],
        worth=[["<=", _LEAST_CHANNELS, count] for count in (channels, filters)],
    )


def winograd_rules() -> list[Rule]:
    """All of them, without certificates."""
    return [_seven_products(), *(_sixteen_products(bias) for bias in (False, True))]


def _changed(rule: Rule, name: str, change: Callable[[pattern.Apply], pattern.Apply]) -> Rule:
    """A control: the rule with this done to each operator of its target."""

    def changed(part: pattern.Term) -> pattern.Term:
        return change(part) if isinstance(part, pattern.Apply) else part

    target = tuple(pattern.rebuilt(term, changed) for term in rule.target)
    return replace(rule, name=name, family="control", target=target)


def false_winograd_controls() -> list[Rule]:
    """The signs of the sums lost; the lines of a tile taken for its columns."""

    def without_sign(part: pattern.Apply) -> pattern.Apply:
        return replace(part, op="Add") if part.op == "Sub" else part

    def turned(part: pattern.Apply) -> pattern.Apply:
        return replace(part, attributes=(("perm", _TURNED),)) if part.attributes == (("perm", _LAID),) else part

    return [
        _changed(_seven_products(), "seven-products-without-signs", without_sign),
        _changed(_sixteen_products(bias=False), "sixteen-products-turned", turned),
    ]
