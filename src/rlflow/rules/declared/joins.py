"""Declared rules of Concat and Split: what lies end to end can be worked on whole, and the other way round.

Every rule is declared in the direction that works on the parts; its reverse, where it is one, works on the whole.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rlflow.rules.declared.elementary import UNARY
from rlflow.rules.rule import Rule, declare

_FAMILY = "join"
_ALONG = ["axis", "x"]
"""Kind of the attribute ?k: an axis of x, counted from the end as the library stores axes."""

_BINARY = ("Add", "Sub", "Mul", "Div")
_SAME_SIZE = ["==", ["dim", "x", "?k"], ["dim", "v", "?k"]]
_POOLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("MaxPool", {"kernel_shape": "?w", "strides": "?s", "pads": "?p", "dilations": [1, 1]}),
    ("AveragePool", {"kernel_shape": "?w", "strides": "?s", "pads": "?p", "count_include_pad": "?i"}),
)
_POOLED = {
    "?w": ["integers", 1, 3, 2],
    "?s": ["integers", 1, 2, 2],
    "?p": ["integers", 0, 1, 4],
    "?i": ["choice", 0, 1],
}
_SAME_SHAPES = [["==", ["shape", x], ["shape", v]] for x, v in (("x", "v"), ("y", "w"))]
_LAST = -1
_ROWS = -2
_IMAGES = -4
_CHANNELS = -3


_PLAIN = {"strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1]}


def _join(axis: Any, *parts: Any) -> Any:
    return ["Concat", {"axis": axis}, *parts]


def _both(rule: Rule, reverse: str) -> list[Rule]:
    return [rule, rule.reversed(reverse)]


def _elementwise_rules() -> list[Rule]:
    unary = [
        declare(
            f"{f.name}-of-parts",
            _FAMILY,
            [f(_join("?k", "x", "y"))],
            [_join("?k", f("x"), f("y"))],
            attributes={"?k": _ALONG, **f.kinds},
        )
        for f in UNARY
    ]
    pairs = [
        declare(
            f"{op.lower()}-of-parts",
            _FAMILY,
            [[op, _join("?k", "x", "y"), _join("?k", "v", "w")]],
            [_join("?k", [op, "x", "v"], [op, "y", "w"])],
            attributes={"?k": _ALONG},
            where=[_SAME_SIZE],
        )
        for op in _BINARY
    ]
    whole = [
        replace(rule.reversed(f"{op.lower()}-of-whole"), where=tuple(_SAME_SHAPES))
        for op, rule in zip(_BINARY, pairs, strict=True)
    ]
    shared = [
        declare(
            f"{op.lower()}-to-{name}-of-parts",
            _FAMILY,
            [[op, _join("?k", "x", "y"), "z"]],
            [_join("?k", [op, "x", "z"], [op, "y", "z"])],
            attributes={"?k": _ALONG},
            where=[condition],
        )
        for op in _BINARY
        for name, condition in (
            ("lines", ["==", ["dim", "z", "?k"], 1]),
            ("scalar", ["==", ["elements", "z"], 1]),
        )
    ]
    reversible = (r for rule in (*unary, *shared) for r in _both(rule, rule.name.replace("-of-parts", "-of-whole")))
    return [*pairs, *whole, *reversible]


def _row_rules() -> list[Rule]:
    """Softmax and normalisation look along the last axis alone."""
    normalised = {"g": {"shape": ["n"]}, "c": {"shape": ["n"]}}
    matrices = {"x": {"shape": ["...b", "m", "n"]}, "y": {"shape": ["...b", "l", "n"]}}
    epsilon = {"epsilon": "?e"}
    softmax = declare(
        "softmax-of-parts",
        _FAMILY,
        [["Softmax", _join(_ROWS, "x", "y")]],
        [_join(_ROWS, ["Softmax", "x"], ["Softmax", "y"])],
        matrices,
    )
    norm = declare(
        "layer-norm-of-parts",
        _FAMILY,
        [["LayerNormalization", epsilon, _join(_ROWS, "x", "y"), "g", "c"]],
        [_join(_ROWS, *(["LayerNormalization", epsilon, part, "g", "c"] for part in "xy"))],
        {**matrices, **normalised},
        attributes={"?e": ["uniform"]},
    )
    return [*_both(softmax, "softmax-of-whole"), *_both(norm, "layer-norm-of-whole")]


def _product_rules() -> list[Rule]:
    """Products of matrices in blocks: over the rows of the left, the columns of the right, and what is summed over."""
    rows = declare(
        "product-of-row-parts",
        _FAMILY,
        [["MatMul", _join(_ROWS, "x", "y"), "w"]],
        [_join(_ROWS, ["MatMul", "x", "w"], ["MatMul", "y", "w"])],
        {"x": {"shape": ["...b", "m", "k"]}, "y": {"shape": ["...b", "l", "k"]}, "w": {"shape": ["...b", "k", "n"]}},
    )
    columns = declare(
        "product-of-column-parts",
        _FAMILY,
        [["MatMul", "x", _join(_LAST, "v", "w")]],
        [_join(_LAST, ["MatMul", "x", "v"], ["MatMul", "x", "w"])],
        {"x": {"shape": ["...b", "m", "k"]}, "v": {"shape": ["...c", "k", "n"]}, "w": {"shape": ["...c", "k", "l"]}},
    )
    inner = declare(
        "product-of-inner-parts",
        _FAMILY,
        [["MatMul", _join(_LAST, "x", "y"), _join(_ROWS, "v", "w")]],
        [["Add", ["MatMul", "x", "v"], ["MatMul", "y", "w"]]],
        {
            "x": {"shape": ["...b", "m", "k"]},
            "y": {"shape": ["...b", "m", "l"]},
            "v": {"shape": ["...c", "k", "n"]},
            "w": {"shape": ["...c", "l", "n"]},
        },
    )
    left = declare(
        "product-of-left-sum",
        _FAMILY,
        [["MatMul", ["Add", "x", "y"], "w"]],
        [["Add", ["MatMul", "x", "w"], ["MatMul", "y", "w"]]],
        {"x": {"shape": ["...b", "m", "k"]}, "y": {"shape": ["...b", "m", "k"]}, "w": {"shape": ["...c", "k", "n"]}},
    )
    right = declare(
        "product-of-right-sum",
        _FAMILY,
        [["MatMul", "x", ["Add", "v", "w"]]],
        [["Add", ["MatMul", "x", "v"], ["MatMul", "x", "w"]]],
        {"x": {"shape": ["...b", "m", "k"]}, "v": {"shape": ["...c", "k", "n"]}, "w": {"shape": ["...c", "k", "n"]}},
    )
    return [
        *_both(rows, "product-of-whole-rows"),
        *_both(columns, "product-of-whole-columns"),
        *_both(inner, "product-of-whole-inner"),
        *_both(left, "left-sum-of-products"),
        *_both(right, "right-sum-of-products"),
    ]


def _part_rules() -> list[Rule]:
    """The parts of a join are what was joined, and the join of all parts is what was parted."""

    def part(i: int, whole: Any) -> Any:
        return ["@", i, ["Split", {"axis": "?k", "split": "?s"}, whole]]

    two = ("x", "y")
    undone = [
        declare(
            f"part-{i}-of-join",
            _FAMILY,
            [part(i, _join("?k", *two))],
            [name],
            attributes={"?k": _ALONG, "?s": ["sizes", "?k", *two]},
            where=[["==", "?s", ["list", *(["dim", n, "?k"] for n in two)]]],
        )
        for i, name in enumerate(two)
    ]
    joined = [
        declare(
            f"join-of-{count}-parts",
            _FAMILY,
            [_join("?k", *(part(i, "x") for i in range(count)))],
            ["x"],
            attributes={"?k": _ALONG, "?s": ["partition", "x", "?k", count]},
            where=[["==", ["length", "?s"], count]],
        )
        for count in (2, 3)
    ]
    return [*undone, *joined]


def _nesting_rules() -> list[Rule]:
    """A join of three as two of two, and joins along two axes in either order."""
    flat, along = [_join("?k", "x", "y", "z")], {"?k": _ALONG}
    first = declare("join-first-two", _FAMILY, flat, [_join("?k", _join("?k", "x", "y"), "z")], attributes=along)
    last = declare("join-last-two", _FAMILY, flat, [_join("?k", "x", _join("?k", "y", "z"))], attributes=along)
    crossed = declare(
        "cross-joins",
        _FAMILY,
        [_join("?j", _join("?k", "x", "y"), _join("?k", "v", "w"))],
        [_join("?k", _join("?j", "x", "v"), _join("?j", "y", "w"))],
        attributes={"?j": _ALONG, "?k": _ALONG},
        where=[["!=", "?j", "?k"], _SAME_SIZE],
    )
    return [*_both(first, "open-first-two"), *_both(last, "open-last-two"), crossed]


def _transpose_rules() -> list[Rule]:
    """A transpose takes the axis of a join with it."""
    rank = ["*", -1, ["length", "?p"]]
    turned = {"?k": _ALONG, "?p": ["permutation", "x"]}

    def transpose(x: Any) -> Any:
        return ["Transpose", {"perm": "?p"}, x]

    into = declare(
        "transpose-of-parts",
        _FAMILY,
        [transpose(_join("?k", "x", "y"))],
        [_join(["+", ["get", ["inverse", "?p"], "?k"], rank], transpose("x"), transpose("y"))],
        attributes=turned,
    )
    out = declare(
        "transpose-of-whole",
        _FAMILY,
        [_join("?k", transpose("x"), transpose("y"))],
        [transpose(_join(["+", ["get", "?p", "?k"], rank], "x", "y"))],
        attributes=turned,
    )
    return [into, out]


_IMAGE = {"shape": ["n", "c", "h", "w"]}
_WINDOW = {"strides": "?s", "pads": "?p", "dilations": "?d"}
_WINDOWS = {"?s": ["integers", 1, 2, 2], "?p": ["integers", 0, 2, 4], "?d": ["integers", 1, 2, 2]}


def _image_rules() -> list[Rule]:
    """Convolutions of the parts of a batch, and of a sum of images, by filters of any groups."""
    grouped, groups = {**_WINDOW, "group": "?g"}, {**_WINDOWS, "?g": ["groups", "x", "f"]}
    filters = {"shape": ["m", "k", "p", "q"]}

    def conv(x: Any) -> Any:
        return ["Conv", grouped, x, "f"]

    batch = declare(
        "convolution-of-image-parts",
        _FAMILY,
        [conv(_join(_IMAGES, "x", "y"))],
        [_join(_IMAGES, conv("x"), conv("y"))],
        {"x": _IMAGE, "y": {"shape": ["l", "c", "h", "w"]}, "f": filters},
        attributes=groups,
    )
    summed = declare(
        "convolution-of-image-sum",
        _FAMILY,
        [conv(["Add", "x", "y"])],
        [["Add", conv("x"), conv("y")]],
        {"x": _IMAGE, "y": _IMAGE, "f": filters},
        attributes=groups,
    )
    return [*_both(batch, "convolution-of-whole-images"), *_both(summed, "sum-of-convolved-images")]


def _filter_rules() -> list[Rule]:
    """Convolutions by the parts of filters: some of them, or what they read of the channels that are summed over."""

    def conv(x: Any, f: Any) -> Any:
        return ["Conv", _WINDOW, x, f]

    out = declare(
        "convolution-of-filter-parts",
        _FAMILY,
        [conv("x", _join(_IMAGES, "f", "g"))],
        [_join(_CHANNELS, conv("x", "f"), conv("x", "g"))],
        {"x": _IMAGE, "f": {"shape": ["m", "c", "p", "q"]}, "g": {"shape": ["l", "c", "p", "q"]}},
        attributes=_WINDOWS,
    )
    inner = declare(
        "convolution-of-channel-parts",
        _FAMILY,
        [conv(_join(_CHANNELS, "x", "y"), _join(_CHANNELS, "f", "g"))],
        [["Add", conv("x", "f"), conv("y", "g")]],
        {
            "x": _IMAGE,
            "y": {"shape": ["n", "e", "h", "w"]},
            "f": {"shape": ["m", "c", "p", "q"]},
            "g": {"shape": ["m", "e", "p", "q"]},
        },
        attributes=_WINDOWS,
    )
    return [*_both(out, "convolution-of-whole-filters"), inner]


def _pool_rules() -> list[Rule]:
    """A pool sees one channel of one image at a time."""
    pools = [
        declare(
            f"{op.lower()}-of-{name}-parts",
            _FAMILY,
            [[op, attributes, _join(axis, "x", "y")]],
            [_join(axis, [op, attributes, "x"], [op, attributes, "y"])],
            {
                "x": _IMAGE,
                "y": {"shape": ["l" if axis == _IMAGES else "n", "e" if axis == _CHANNELS else "c", "h", "w"]},
            },
            attributes={name: kind for name, kind in _POOLED.items() if name in attributes.values()},
        )
        for op, attributes in _POOLS
        for name, axis in (("image", _IMAGES), ("channel", _CHANNELS))
    ]
    return [r for rule in pools for r in _both(rule, rule.name.replace("-parts", "-whole"))]


def join_rules() -> list[Rule]:
    """All of them, without certificates."""
    return [
        *_elementwise_rules(),
        *_row_rules(),
        *_product_rules(),
        *_part_rules(),
        *_nesting_rules(),
        *_transpose_rules(),
        *_image_rules(),
        *_filter_rules(),
        *_pool_rules(),
    ]


def false_join_controls() -> list[Rule]:
    """Rules about joints that are wrong, each in a way that is easily overlooked."""
    return [
        declare(
            "joins-commute",
            "control",
            [_join("?k", "x", "y")],
            [_join("?k", "y", "x")],
            attributes={"?k": _ALONG},
        ),
        declare(
            "softmax-of-any-parts",
            "control",
            [["Softmax", _join("?k", "x", "y")]],
            [_join("?k", ["Softmax", "x"], ["Softmax", "y"])],
            attributes={"?k": _ALONG},
        ),
        declare(
            "sum-of-crossed-parts",
            "control",
            [["Add", _join(_LAST, "x", "y"), _join(_LAST, "v", "w")]],
            [_join(_LAST, ["Add", "x", "w"], ["Add", "y", "v"])],
            {name: {"shape": ["m", "n"]} for name in "xyvw"},
        ),
        declare(
            "joins-along-one-axis-cross",
            "control",
            [_join("?k", _join("?k", "x", "y"), _join("?k", "v", "w"))],
            [_join("?k", _join("?k", "x", "v"), _join("?k", "y", "w"))],
            attributes={"?k": _ALONG},
        ),
        declare(
            "any-part-of-join",
            "control",
            [["@", 0, ["Split", {"axis": "?k", "split": "?s"}, _join("?k", "x", "y")]]],
            ["y"],
            attributes={"?k": _ALONG, "?s": ["sizes", "?k", "y", "x"]},
        ),
        declare(
            "convolution-of-filter-parts-in-groups",
            "control",
            [["Conv", {**_PLAIN, "group": "?g"}, "x", _join(_IMAGES, "f", "g")]],
            [_join(_CHANNELS, *(["Conv", {**_PLAIN, "group": "?g"}, "x", part] for part in "fg"))],
            {"x": {"shape": ["n", "c", "h", "w"]}, **{f: {"shape": ["m", "k", "p", "q"]} for f in "fg"}},
            attributes={"?g": ["groups", "x", "f"]},
        ),
    ]
