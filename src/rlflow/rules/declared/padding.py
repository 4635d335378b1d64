"""Declared rules of padding: zeros around filters or images pass whatever keeps zero at zero.

They undo what enlarging filters does (TASO, section 2), or bring the zeros to where they are done with.
"""

from __future__ import annotations

from typing import Any

from rlflow.rules.rule import Rule, declare

_FAMILY = "convolution"
_BATCH, _CHANNELS = -4, -3
_IMAGE = {"shape": ["n", "c", "h", "w"]}
_OTHER = {"shape": ["m", "k", "p", "q"]}
_PADS = {"?p": ["integers", 0, 2, 8]}
_AROUND = {
    "?p": [
        "choice",
        [0, 0, 1, 1, 0, 0, 1, 1],
        [0, 0, 0, 1, 0, 0, 1, 0],
        [0, 0, 1, 0, 0, 0, 0, 1],
        [1, 0, 1, 0, 0, 1, 0, 1],
    ]
}
_WITHIN_IMAGES = [["==", ["get", "?p", i], 0] for i in (0, 1, 4, 5)]
"""Nothing is put around axes 0 and 1."""


def _pad(x: Any, pads: Any = "?p") -> Any:
    return ["Pad", {"pads": pads}, x]


def _both(rule: Rule, reverse: str) -> list[Rule]:
    return [rule, rule.reversed(reverse)]


def _nothing() -> list[Rule]:
    """Pads of no width, means of a single point, and two pads as one."""
    points = {"kernel_shape": [1, 1], "strides": [1, 1], "pads": [0] * 4, "count_include_pad": "?i"}
    return [
        *(
            declare(f"drop-empty-pad-{rank}", _FAMILY, [_pad("x", [0] * (2 * rank))], ["x"], {"x": {"shape": [*axes]}})
            for rank, axes in ((2, "mk"), (4, "nchw"))
        ),
        declare(
            "drop-mean-of-points",
            _FAMILY,
            [["AveragePool", points, "x"]],
            ["x"],
            {"x": _IMAGE},
            attributes={"?i": ["choice", 0, 1]},
        ),
    ]


def _elementwise() -> list[Rule]:
    relu = declare(
        "pad-before-relu", _FAMILY, [_pad(["Relu", "x"])], [["Relu", _pad("x")]], {"x": _IMAGE}, attributes=_PADS
    )
    pairs = [
        declare(
            f"pad-before-{op.lower()}",
            _FAMILY,
            [_pad([op, "x", "y"])],
            [[op, _pad("x"), _pad("y")]],
            {"x": _IMAGE, "y": _IMAGE},
            attributes=_PADS,
        )
        for op in ("Add", "Mul")
    ]
    scale = declare(
        "pad-before-scale",
        _FAMILY,
        [_pad(["Mul", "x", "s"])],
        [["Mul", _pad("x"), "s"]],
        {"x": _IMAGE, "s": {"shape": []}},
        attributes=_PADS,
    )
    return [new for rule in (relu, *pairs, scale) for new in _both(rule, rule.name.replace("before", "after"))]


def _joined() -> list[Rule]:
    """Around the windows of parts, or of all of them."""
    parts = [
        declare(
            f"pad-of-{name}-parts",
            _FAMILY,
            [_pad(["Concat", {"axis": axis}, "x", "y"])],
            [["Concat", {"axis": axis}, _pad("x"), _pad("y")]],
            {"x": _IMAGE, "y": {"shape": [new if old == joined else old for old in "nchw"]}},
            attributes=_AROUND,
            where=_WITHIN_IMAGES,
        )
        for name, axis, joined, new in (("image", _BATCH, "n", "m"), ("channel", _CHANNELS, "c", "e"))
    ]
    return [new for rule in parts for new in _both(rule, rule.name.replace("parts", "whole"))]


def _filters() -> Rule:
    """The inverse of enlarging: without their zeros, filters need that much less around the image."""
    less = ["list", *(["+", ["get", "?a", i], ["*", -1, ["get", "?p", j]]] for i, j in enumerate((2, 3, 6, 7)))]
    window = {"strides": "?s", "dilations": [1, 1], "group": "?g"}
    return declare(
        "shrink-filters",
        _FAMILY,
        [["Conv", {**window, "pads": "?a"}, "x", _pad("f")]],
        [["Conv", {**window, "pads": less}, "x", "f"]],
        {"x": _IMAGE, "f": _OTHER},
        attributes={
            "?s": ["integers", 1, 2, 2],
            "?a": ["integers", 1, 3, 4],
            "?g": ["groups", "x", "f"],
            **_AROUND,
        },
        where=_WITHIN_IMAGES,
    )


def padding_rules() -> list[Rule]:
    """All of them, without certificates."""
    return [*_nothing(), *_elementwise(), *_joined(), _filters()]


def false_padding_controls() -> list[Rule]:
    """What does not keep zero at zero, and zeros that come to lie between the parts."""
    around, left, right = ([0, 0, 1, *(begin, 0, 0, 1), end] for begin, end in ((1, 1), (1, 0), (0, 1)))
    joint = {"axis": -1}
    return [
        declare("pad-passes-exp", "control", [_pad(["Exp", "x"], around)], [["Exp", _pad("x", around)]], {"x": _IMAGE}),
        declare(
            "pad-passes-shift",
            "control",
            [_pad(["Add", "x", "s"], around)],
            [["Add", _pad("x", around), "s"]],
            {"x": _IMAGE, "s": {"shape": []}},
        ),
        declare(
            "pad-between-parts",
            "control",
            [_pad(["Concat", joint, "x", "y"], around)],
            [["Concat", joint, _pad("x", right), _pad("y", left)]],
            {"x": _IMAGE, "y": _IMAGE},
        ),
    ]
