"""Declared rules of convolutions in groups and of single points: groups apart and together, strides as slices, and
filters of one point as products.
"""

from __future__ import annotations

from typing import Any

from rlflow.rules.rule import Rule, declare

_FAMILY = "convolution"
_CHANNELS = -3
_FILTERS = -4
_TO_THE_END = 2**31 - 1

_WINDOW = {"strides": "?s", "pads": "?p", "dilations": "?d"}
_GROUPED = {**_WINDOW, "group": "?g"}
_WINDOWS = {"?s": ["integers", 1, 2, 2], "?p": ["integers", 0, 2, 4], "?d": ["integers", 1, 2, 2]}
_GROUPS = {"?g": ["groups", "x", "f"]}
_IMAGE: dict[str, Any] = {"shape": ["n", "c", "h", "w"]}
_POINTS: dict[str, Any] = {"shape": ["m", "k", 1, 1], "constant": True}
_BIAS: dict[str, Any] = {"shape": ["m"], "constant": True}


def _name(name: str, bias: bool) -> str:
    return f"{name}-with-bias" if bias else name


def _halves(x: Any, axis: int, size: Any) -> list[Any]:
    half = ["/", size, 2]
    return [["@", i, ["Split", {"axis": axis, "split": ["list", half, half]}, x]] for i in range(2)]


def _apart(bias: bool) -> Rule:
    """The groups of the first half of the channels, and those of the second."""
    filters = ["dim", "f", 0]
    parts = [
        _halves("x", _CHANNELS, ["dim", "x", 1]),
        _halves("f", _FILTERS, filters),
        *([_halves("b", -1, filters)] if bias else []),
    ]
    half = ["/", "?g", 2]
    convolutions = [["Conv", {**_WINDOW, "group": half}, *operands] for operands in zip(*parts, strict=True)]
    return declare(
        _name("groups-apart", bias),
        _FAMILY,
        [["Conv", _GROUPED, "x", "f", *(["b"] if bias else [])]],
        [["Concat", {"axis": _CHANNELS}, *convolutions]],
        {
            "x": _IMAGE,
            "f": {"shape": ["m", "k", "p", "q"], "constant": True},
            **({"b": _BIAS} if bias else {}),
        },
        attributes={**_WINDOWS, **_GROUPS},
        where=[["==", ["*", 2, half], "?g"]],
    )


def _together(bias: bool) -> Rule:
    """Convolutions of two images of one shape by as many filters, end to end, as one in twice the groups."""
    filters: dict[str, Any] = {"shape": ["m", "k", "p", "q"], "constant": True}
    pairs = ((_CHANNELS, "x", "y"), (_FILTERS, "f", "g"), (-1, "b", "d"))[: 3 if bias else 2]
    convolutions = [["Conv", _GROUPED, *(pair[side] for pair in pairs)] for side in (1, 2)]
    joined = [["Concat", {"axis": axis}, *operands] for axis, *operands in pairs]
    return declare(
        _name("groups-together", bias),
        _FAMILY,
        [["Concat", {"axis": _CHANNELS}, *convolutions]],
        [["Conv", {**_WINDOW, "group": ["*", 2, "?g"]}, *joined]],
        {"x": _IMAGE, "y": _IMAGE, "f": filters, "g": filters, **({"b": _BIAS, "d": _BIAS} if bias else {})},
        attributes={**_WINDOWS, **_GROUPS},
    )


def _strided_points(bias: bool) -> Rule:
    """Filters of one point that skip points, as filters of all points of a slice."""
    plain = {"pads": [0, 0, 0, 0], "dilations": "?d", "group": "?g"}
    ends = [_TO_THE_END, _TO_THE_END]
    seen = ["Slice", {"axes": [-2, -1], "starts": [0, 0], "ends": ends, "steps": "?s"}, "x"]
    biases = ["b"] if bias else []
    return declare(
        _name("strided-points-to-slice", bias),
        _FAMILY,
        [["Conv", {**plain, "strides": "?s"}, "x", "f", *biases]],
        [["Conv", {**plain, "strides": [1, 1]}, seen, "f", *biases]],
        {"x": _IMAGE, "f": _POINTS, **({"b": _BIAS} if bias else {})},
        attributes={"?s": _WINDOWS["?s"], "?d": _WINDOWS["?d"], **_GROUPS},
        where=[["!=", "?s", [1, 1]]],
    )


def _grouped_points(bias: bool) -> Rule:
    """A product of matrices for each group."""
    plain = {"strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": "?d", "group": "?g"}
    filters, channels = ["dim", "f", 0], ["dim", "f", 1]
    weights = ["Reshape", {"shape": ["list", "?g", ["/", filters, "?g"], channels]}, "f"]
    columns = ["Reshape", {"shape": ["list", 0, "?g", channels, -1]}, "x"]
    image = [
        "Reshape",
        {"shape": ["list", 0, filters, ["dim", "x", 2], ["dim", "x", 3]]},
        ["MatMul", weights, columns],
    ]
    return declare(
        _name("grouped-points-to-products", bias),
        _FAMILY,
        [["Conv", plain, "x", "f", *(["b"] if bias else [])]],
        [["Add", image, ["Reshape", {"shape": [-1, 1, 1]}, "b"]] if bias else image],
        {"x": _IMAGE, "f": _POINTS, **({"b": _BIAS} if bias else {})},
        attributes={"?d": _WINDOWS["?d"], **_GROUPS},
        where=[["<", 1, "?g"]],
    )


def _single_points(bias: bool) -> Rule:
    """One point of one channel each: a factor."""
    plain = {"strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": "?d", "group": "?g"}
    factors, addends = (["Reshape", {"shape": [-1, 1, 1]}, name] for name in "fb")
    scaled = ["Mul", "x", factors]
    return declare(
        _name("single-points-to-factors", bias),
        _FAMILY,
        [["Conv", plain, "x", "f", *(["b"] if bias else [])]],
        [["Add", scaled, addends] if bias else scaled],
        {
            "x": _IMAGE,
            "f": {"shape": ["c", 1, 1, 1], "constant": True},
            **({"b": {"shape": ["c"], "constant": True}} if bias else {}),
        },
        attributes={"?d": _WINDOWS["?d"], **_GROUPS},
    )


def group_rules() -> list[Rule]:
    """All of them, without certificates."""
    makers = (_apart, _together, _strided_points, _grouped_points, _single_points)
    return [make(bias) for make in makers for bias in (False, True)]


def false_group_controls() -> list[Rule]:
    """Groups mistaken for others; each is well typed."""
    plain = {"strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1]}
    points = {"x": _IMAGE, "f": {"shape": ["c", "c", 1, 1], "constant": True}}
    images: dict[str, Any] = {"x": {"shape": ["n", 4, "h", "w"]}, "f": {"shape": [4, 2, "p", "q"], "constant": True}}

    def swapped(x: Any, axis: int) -> Any:
        return ["Concat", {"axis": axis}, *reversed(_halves(x, axis, 4))]

    return [
        declare(
            "groups-change-places",
            "control",
            [["Conv", {**plain, "group": 2}, "x", "f"]],
            [["Conv", {**plain, "group": 2}, swapped("x", _CHANNELS), "f"]],
            images,
        ),
        declare(
            "strided-points-start-at-the-second",
            "control",
            [["Conv", {**plain, "strides": [2, 2]}, "x", "f"]],
            [
                [
                    "Conv",
                    plain,
                    [
                        "Slice",
                        {"axes": [-2, -1], "starts": [1, 1], "ends": [_TO_THE_END] * 2, "steps": [2, 2]},
                        "x",
                    ],
                    "f",
                ]
            ],
            points,
        ),
    ]
