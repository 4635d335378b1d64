"""Declared rules of convolutional networks: images (n, c, h, w), filters (m, c / group, p, q), bias (m).

Filters and biases are constants wherever a rule computes with them: that work is done once, at export.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlflow.rules.rule import Rule, declare

_FAMILY = "convolution"
_CHANNELS = -3
"""The axis of an image's channels, counted from the end as the library stores axes."""

_FILTERS = -4
_INPUTS = -3
"""Axes of the filters: which one, and which channel of the image it reads."""

_WINDOW = {"strides": "?s", "pads": "?p", "dilations": "?d"}
_GROUPED = {**_WINDOW, "group": "?g"}
_WINDOWS = {"?s": ["integers", 1, 2, 2], "?p": ["integers", 0, 2, 4], "?d": ["integers", 1, 2, 2]}
_GROUPS = {**_WINDOWS, "?g": ["groups", "x", "f"]}
_IMAGE = {"shape": ["n", "c", "h", "w"]}


def _constant(*shape: int | str) -> dict[str, Any]:
    return {"shape": list(shape), "constant": True}


_KERNEL = _constant("m", "k", "p", "q")
_BIAS = _constant("m")


def _conv(attributes: dict[str, Any], *operands: Any) -> Any:
    return ["Conv", attributes, *operands]


def _reshape(x: Any, *shape: Any) -> Any:
    return ["Reshape", {"shape": list(shape)}, x]


def _name(name: str, bias: bool) -> str:
    return f"{name}-with-bias" if bias else name


def _fold_normalisation(bias: bool) -> Rule:
    """y -> (y - mean) / deviation * scale + shift after a convolution: the same done to its filters and its bias.

    A bias is normalised as it stands, filters without mean and shift: mean - mean is the zero that this takes.
    """
    zero = ["Sub", "mean", "mean"]
    swap = {"perm": [1, 0, 2, 3]}

    def normalised(x: Any, shift: Any, mean: Any) -> Any:
        return ["BatchNormalization", {"epsilon": "?e"}, x, "scale", shift, mean, "variance"]

    filters = ["Transpose", swap, normalised(["Transpose", swap, "f"], zero, zero)]
    row = ["Unsqueeze", {"axes": [0]}, "b" if bias else zero]
    moved = ["Squeeze", {"axes": [-2]}, normalised(row, "shift", "mean")]
    parameters = dict.fromkeys(("scale", "shift", "mean", "variance"), _BIAS)
    return declare(
        _name("fold-batch-normalisation", bias),
        _FAMILY,
        [normalised(_conv(_GROUPED, "x", "f", *(["b"] if bias else [])), "shift", "mean")],
        [_conv(_GROUPED, "x", filters, moved)],
        {"x": _IMAGE, "f": _KERNEL, **({"b": _BIAS} if bias else {}), **parameters},
        attributes={**_GROUPS, "?e": ["uniform"]},
    )


_PER_CHANNEL = _constant("...a", "m", 1, 1)


def _addend_to_bias(bias: bool) -> Rule:
    addend = _reshape("a", -1)
    return declare(
        _name("addend-to-bias", bias),
        _FAMILY,
        [["Add", _conv(_GROUPED, "x", "f", *(["b"] if bias else [])), "a"]],
        [_conv(_GROUPED, "x", "f", ["Add", "b", addend] if bias else addend)],
        {"x": _IMAGE, "f": _KERNEL, **({"b": _BIAS} if bias else {}), "a": _PER_CHANNEL},
        attributes=_GROUPS,
    )


def _scale_into_filters(per_channel: bool, bias: bool) -> Rule:
    """A factor of all channels or of each one."""
    return declare(
        _name(f"scale-{'channels' if per_channel else 'all'}-into-filters", bias),
        _FAMILY,
        [["Mul", _conv(_GROUPED, "x", "f", *(["b"] if bias else [])), "s"]],
        [
            _conv(
                _GROUPED,
                "x",
                ["Mul", "f", _reshape("s", -1, 1, 1, 1)],
                *([["Mul", "b", _reshape("s", -1)]] if bias else []),
            )
        ],
        {
            "x": _IMAGE,
            "f": _KERNEL,
            **({"b": _BIAS} if bias else {}),
            "s": _PER_CHANNEL if per_channel else {"constant": True},
        },
        attributes=_GROUPS,
        where=[] if per_channel else [["==", ["elements", "s"], 1]],
    )


def _merge(parts: int, bias: bool) -> Rule:
    """Convolutions of one image, as one with more filters (TASO, section 2; the 1x1 branches of an Inception block)."""
    filters = [f"f{i}" for i in range(parts)]
    biases = [f"b{i}" for i in range(parts)] if bias else []
    variables: dict[str, Any] = {"x": _IMAGE}
    variables |= {f: _constant(f"m{i}", "c", "p", "q") for i, f in enumerate(filters)}
    variables |= {b: _constant(f"m{i}") for i, b in enumerate(biases)}
    together = ["Concat", {"axis": _FILTERS}, *filters]
    merged = _conv(_WINDOW, "x", together, *([["Concat", {"axis": -1}, *biases]] if bias else []))
    split = ["Split", {"axis": _CHANNELS, "split": ["list", *(["dim", f, 0] for f in filters)]}, merged]
    return declare(
        _name(f"merge-{parts}-convolutions", bias),
        _FAMILY,
        [_conv(_WINDOW, "x", f, *biases[i : i + 1]) for i, f in enumerate(filters)],
        [["@", i, split] for i in range(parts)],
        variables,
        attributes=_WINDOWS,
    )


def _unmerge(parts: int, bias: bool) -> Rule:
    """The inverse: a convolution whose channels are split right away, as separate convolutions."""
    sizes = {"split": "?sizes"}
    split = ["Split", {"axis": _CHANNELS, **sizes}, _conv(_WINDOW, "x", "f", *(["b"] if bias else []))]
    filters = ["Split", {"axis": _FILTERS, **sizes}, "f"]
    biases = ["Split", {"axis": -1, **sizes}, "b"]
    return declare(
        _name(f"split-convolution-{parts}", bias),
        _FAMILY,
        [["@", i, split] for i in range(parts)],
        [_conv(_WINDOW, "x", ["@", i, filters], *([["@", i, biases]] if bias else [])) for i in range(parts)],
        {"x": _IMAGE, "f": _constant("m", "c", "p", "q"), **({"b": _BIAS} if bias else {})},
        attributes={**_WINDOWS, "?sizes": ["partition", "f", 0, parts]},
        where=[["==", ["length", "?sizes"], parts]],
    )


def _sum_rules(bias: bool) -> list[Rule]:
    """A sum of two convolutions as one: over both images end to end, or with the sum of the filters where the image is
    the same (the branches of a RepVGG block, Ding et al., 2021).
    """
    biases = [["b"], ["d"]] if bias else [[], []]
    total = [["Add", "b", "d"]] if bias else []
    variables = {"b": _BIAS, "d": _BIAS} if bias else {}
    images = {"x": _IMAGE, "y": {"shape": ["n", "e", "h", "w"]}}
    filters = {"f": _constant("m", "c", "p", "q"), "g": _constant("m", "e", "p", "q")}
    joined = [["Concat", {"axis": _CHANNELS}, "x", "y"], ["Concat", {"axis": _INPUTS}, "f", "g"]]
    return [
        declare(
            _name("sum-of-convolutions-to-one", bias),
            _FAMILY,
            [["Add", _conv(_WINDOW, "x", "f", *biases[0]), _conv(_WINDOW, "y", "g", *biases[1])]],
            [_conv(_WINDOW, *joined, *total)],
            {**images, **filters, **variables},
            attributes=_WINDOWS,
        ),
        declare(
            _name("sum-of-filters", bias),
            _FAMILY,
            [["Add", _conv(_GROUPED, "x", "f", *biases[0]), _conv(_GROUPED, "x", "g", *biases[1])]],
            [_conv(_GROUPED, "x", ["Add", "f", "g"], *total)],
            {"x": _IMAGE, "f": _KERNEL, "g": _KERNEL, **variables},
            attributes=_GROUPS,
        ),
    ]


def _sum_of_sizes(bias: bool) -> Rule:
    """The same of 3 x 3 and 1 x 1 filters that keep the image's size, in one step: to enlarge first costs more than a
    search accepts.
    """
    attributes = {"strides": "?s", "dilations": [1, 1], "group": "?g"}
    wide, narrow = ({**attributes, "pads": [pad] * 4} for pad in (1, 0))
    biases = [["b"], ["d"]] if bias else [[], []]
    around = ["Pad", {"pads": [0, 0, 1, 1, 0, 0, 1, 1]}, "g"]
    return declare(
        _name("sum-of-3x3-and-1x1-filters", bias),
        _FAMILY,
        [["Add", _conv(wide, "x", "f", *biases[0]), _conv(narrow, "x", "g", *biases[1])]],
        [_conv(wide, "x", ["Add", "f", around], *([["Add", "b", "d"]] if bias else []))],
        {
            "x": _IMAGE,
            "f": _constant("m", "k", 3, 3),
            "g": _constant("m", "k", 1, 1),
            **({"b": _BIAS, "d": _BIAS} if bias else {}),
        },
        attributes={"?s": _GROUPS["?s"], "?g": _GROUPS["?g"]},
        opset=11,
    )


def _scale_rules() -> list[Rule]:
    """A factor of the whole image, of its filters or of the outcome: the same, whatever the groups."""
    variables = {"x": _IMAGE, "f": {"shape": _KERNEL["shape"]}, "s": {"shape": []}}
    scaled = ["Mul", _conv(_GROUPED, "x", "f"), "s"]
    places = {"image": _conv(_GROUPED, ["Mul", "x", "s"], "f"), "filters": _conv(_GROUPED, "x", ["Mul", "f", "s"])}
    return [
        rule
        for place, term in places.items()
        for out in [declare(f"scale-out-of-{place}", _FAMILY, [term], [scaled], variables, attributes=_GROUPS)]
        for rule in (out, out.reversed(f"scale-into-{place}"))
    ]


def _to_product(bias: bool) -> Rule:
    """A convolution of single points as a product of matrices."""
    attributes = {"strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": "?d"}
    columns = _reshape("x", 0, ["dim", "x", 1], -1)
    product = ["MatMul", _reshape("f", ["dim", "f", 0], ["dim", "f", 1]), columns]
    image = _reshape(product, 0, ["dim", "f", 0], ["dim", "x", 2], ["dim", "x", 3])
    return declare(
        _name("points-to-product", bias),
        _FAMILY,
        [_conv(attributes, "x", "f", *(["b"] if bias else []))],
        [["Add", image, _reshape("b", -1, 1, 1)] if bias else image],
        {"x": _IMAGE, "f": _constant("m", "c", 1, 1), **({"b": _BIAS} if bias else {})},
        attributes={"?d": _WINDOWS["?d"]},
    )


def _enlarge(height: int, width: int, bias: bool) -> Rule:
    """Filters of up to 3 x 3, with zeros around them: merged with others they must be of one size (TASO, section 2)."""
    y, x = (3 - height) // 2, (3 - width) // 2
    pads = ["list", *(["+", ["get", "?p", i], more] for i, more in enumerate((y, x, y, x)))]
    around = ["Pad", {"pads": [0, 0, y, x, 0, 0, y, x]}, "f"]
    attributes = {**_GROUPED, "dilations": [1, 1]}
    biases = ["b"] if bias else []
    return declare(
        _name(f"enlarge-{height}x{width}-filters", bias),
        _FAMILY,
        [_conv(attributes, "x", "f", *biases)],
        [_conv({**attributes, "pads": pads}, "x", around, *biases)],
        {"x": _IMAGE, "f": _constant("m", "k", height, width), **({"b": _BIAS} if bias else {})},
        attributes={k: v for k, v in _GROUPS.items() if k != "?d"},
        opset=11,
    )


def _halve_groups(bias: bool) -> Rule:
    """Two groups at a time become one: filters of the first read zeros of the second's channels, and conversely."""
    half = ["/", "?g", 2]
    each = ["/", ["dim", "f", 0], "?g"]
    taps = ["*", ["dim", "f", 1], ["dim", "f", 2], ["dim", "f", 3]]
    pairs = ["Split", {"axis": -3, "split": [1, 1]}, _reshape("f", half, 2, each, taps)]
    first = ["Pad", {"pads": ["list", 0, 0, 0, 0, 0, 0, 0, taps]}, ["@", 0, pairs]]
    second = ["Pad", {"pads": ["list", 0, 0, 0, taps, 0, 0, 0, 0]}, ["@", 1, pairs]]
    shape = [["dim", "f", 0], ["*", 2, ["dim", "f", 1]], ["dim", "f", 2], ["dim", "f", 3]]
    blocks = _reshape(["Concat", {"axis": -3}, first, second], *shape)
    biases = ["b"] if bias else []
    return declare(
        _name("halve-groups", bias),
        _FAMILY,
        [_conv(_GROUPED, "x", "f", *biases)],
        [_conv({**_GROUPED, "group": half}, "x", blocks, *biases)],
        {"x": _IMAGE, "f": _KERNEL, **({"b": _BIAS} if bias else {})},
        attributes=_GROUPS,
        where=[["==", ["*", 2, ["/", "?g", 2]], "?g"]],
        opset=11,
    )


def _pad_into_convolution(bias: bool) -> Rule:
    biases = ["b"] if bias else []
    pads = ["list", *(["+", ["get", "?p", i], ["get", "?q", j]] for i, j in enumerate((2, 3, 6, 7)))]
    return declare(
        _name("pad-into-convolution", bias),
        _FAMILY,
        [_conv(_GROUPED, ["Pad", {"pads": "?q"}, "x"], "f", *biases)],
        [_conv({**_GROUPED, "pads": pads}, "x", "f", *biases)],
        {"x": _IMAGE, "f": {"shape": _KERNEL["shape"]}, **({"b": {"shape": ["m"]}} if bias else {})},
        attributes={**_GROUPS, "?q": ["integers", 0, 1, 8]},
        where=[["==", ["get", "?q", i], 0] for i in (0, 1, 4, 5)],
    )


def _pooling_rules() -> list[Rule]:
    mean = declare(
        "global-average-to-mean",
        _FAMILY,
        [["GlobalAveragePool", "x"]],
        [["ReduceMean", {"axes": [-2, -1], "keepdims": 1}, "x"]],
        {"x": _IMAGE},
    )
    return [mean, mean.reversed("mean-to-global-average")]


def convolution_rules() -> list[Rule]:
    """All declared rules of this file, without certificates."""
    plain_and_biased = (False, True)
    return [
        *(_fold_normalisation(bias) for bias in plain_and_biased),
        *(_addend_to_bias(bias) for bias in plain_and_biased),
        *(_scale_into_filters(each, bias) for each in (False, True) for bias in plain_and_biased),
        *(_merge(parts, bias) for parts in (2, 3) for bias in plain_and_biased),
        *(_unmerge(parts, bias) for parts in (2, 3) for bias in plain_and_biased),
        *(rule for bias in plain_and_biased for rule in _sum_rules(bias)),
        *_scale_rules(),
        _sum_rules(bias=False)[1].reversed("convolution-of-filter-sum"),
        *(_to_product(bias) for bias in plain_and_biased),
        *(_enlarge(*size, bias) for size in ((1, 1), (1, 3), (3, 1)) for bias in plain_and_biased),
        *(_sum_of_sizes(bias) for bias in plain_and_biased),
        *(_halve_groups(bias) for bias in plain_and_biased),
        *(_pad_into_convolution(bias) for bias in plain_and_biased),
        *_pooling_rules(),
    ]


def _control(name: str, source: Sequence[Any], target: Sequence[Any], variables: Any, **rest: Any) -> Rule:
    return declare(name, "control", list(source), list(target), variables, **rest)


_PLAIN = {"strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1]}


def false_convolution_controls() -> list[Rule]:
    """Mistakes that are easily made with convolutions; each is well typed, and right for some operands."""
    return [*_false_merges(), *_false_sums(), *_false_windows()]


def _false_merges() -> list[Rule]:
    pair = {"f": _constant(2, 2, "p", "q"), "g": _constant(2, 2, "p", "q")}
    grouped = {**_WINDOW, "group": 2}
    strided = {"strides": [2, 2], "pads": [1, 1, 1, 1], "dilations": [1, 1]}
    together = ["Concat", {"axis": _FILTERS}, "f", "g"]

    def split(merged: Any) -> list[Any]:
        return [["@", i, ["Split", {"axis": _CHANNELS, "split": [2, 2]}, merged]] for i in range(2)]

    return [
        _control(
            "grouped-convolutions-merge",
            [_conv(grouped, "x", "f"), _conv(grouped, "x", "g")],
            split(_conv(grouped, "x", together)),
            {"x": {"shape": ["n", 4, "h", "w"]}, **pair},
            attributes=_WINDOWS,
        ),
        _control(
            "convolutions-of-different-strides-merge",
            [_conv(_PLAIN, "x", "f"), _conv(strided, "x", "g")],
            split(_conv(_PLAIN, "x", together)),
            {"x": {"shape": ["n", 2, 4, 4]}, "f": _constant(2, 2, 2, 2), "g": _constant(2, 2, 2, 2)},
        ),
    ]


def _false_sums() -> list[Rule]:
    square = _constant("c", "c", "p", "p")
    filters = _constant("m", "c", "p", "q")
    return [
        _control(
            "convolutions-commute",
            [_conv(_PLAIN, _conv(_PLAIN, "x", "f"), "g")],
            [_conv(_PLAIN, _conv(_PLAIN, "x", "g"), "f")],
            {"x": _IMAGE, "f": square, "g": square},
        ),
        _control(
            "normalisation-ignores-the-mean",
            [["BatchNormalization", {"epsilon": "?e"}, _conv(_WINDOW, "x", "f"), "s", "t", "u", "v"]],
            [["BatchNormalization", {"epsilon": "?e"}, _conv(_WINDOW, "x", "f", "u"), "s", "t", "u", "v"]],
            {"x": _IMAGE, "f": filters, **dict.fromkeys("stuv", _BIAS)},
            attributes={**_WINDOWS, "?e": ["uniform"]},
        ),
        _control(
            "sums-of-images-and-filters",
            [["Add", _conv(_WINDOW, "x", "f"), _conv(_WINDOW, "y", "g")]],
            [_conv(_WINDOW, ["Add", "x", "y"], ["Add", "f", "g"])],
            {"x": _IMAGE, "y": _IMAGE, "f": filters, "g": filters},
            attributes=_WINDOWS,
        ),
    ]


def _false_windows() -> list[Rule]:
    window = {"kernel_shape": [2, 2], "strides": "?s", "pads": [1, 0, 1, 1]}
    raised = ["list", *(["+", ["get", "?p", i], 1] for i in range(4))]
    return [
        _control(
            "filters-grow-off-centre",
            [_conv(_WINDOW, "x", "f")],
            [_conv({**_WINDOW, "pads": raised}, "x", ["Pad", {"pads": [0, 0, 2, 2, 0, 0, 0, 0]}, "f"])],
            {"x": _IMAGE, "f": _constant("m", "c", 1, 1)},
            attributes={**_WINDOWS, "?d": ["choice", [1, 1]]},
        ),
        _control(
            "ones-around-are-zeros-around",
            [_conv(_PLAIN, ["Pad", {"pads": [0, 0, 1, 1, 0, 0, 1, 1], "constant_value": 1.0}, "x"], "f")],
            [_conv({**_PLAIN, "pads": [1, 1, 1, 1]}, "x", "f")],
            {"x": _IMAGE, "f": _constant("m", "c", "p", "q")},
        ),
        _control(
            "largest-of-a-sum",
            [["MaxPool", {**window, "dilations": [1, 1]}, ["Add", "x", "y"]]],
            [["Add", *(["MaxPool", {**window, "dilations": [1, 1]}, i] for i in "xy")]],
            {"x": _IMAGE, "y": _IMAGE},
            attributes={"?s": _WINDOWS["?s"]},
        ),
        _control(
            "padding-does-not-count",
            [["AveragePool", {**window, "count_include_pad": 1}, "x"]],
            [["AveragePool", window, "x"]],
            {"x": _IMAGE},
            attributes={"?s": _WINDOWS["?s"]},
        ),
    ]
