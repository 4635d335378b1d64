"""Declared rules of what moves elements or relabels them: reshapes, transposes and pads that cancel, meet or pass.

Transposes sink towards the outputs, where they meet others. Where two relabellings give a tensor the type that it had,
it is the tensor that it was: the matcher demands equal types.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlflow.rules.declared.elementary import UNARY
from rlflow.rules.rule import Rule, declare

_FAMILY = "movement"
_LAST = -1
_TO_THE_END = 2**31 - 1

_BINARY = ("Add", "Mul", "Sub", "Div")
_COMMUTATIVE = ("Add", "Mul")
_TURN = {"?p": ["permutation", "x"]}
_RANK = ["length", "?p"]


def _operands(op: str) -> Sequence[tuple[str, tuple[str, str]]]:
    """x and z in this order, and in the other where it is another."""
    return [("", ("x", "z")), *([] if op in _COMMUTATIVE else [("-from-right", ("z", "x"))])]


def _relabelling_rules() -> list[Rule]:
    """Reshape, Flatten, Squeeze, Unsqueeze and Identity, one after another."""
    wider = ["join", ["shape", "x"], [1]]
    unsqueeze = ["Unsqueeze", {"axes": "?u"}, "x"]
    squeeze = ["Squeeze", {"axes": "?v"}, "x"]
    flatten = ["Flatten", {"axis": "?w"}, "x"]
    narrowing = {"?v": ["choice", [-1], [-2], [-3]]}
    widening = {"?u": ["choice", [-1], [-2], [0], [1]]}
    flattening = {"?w": ["choice", 0, 1, 2, -1]}
    inner = (("unsqueeze", unsqueeze, widening), ("squeeze", squeeze, narrowing), ("flatten", flatten, flattening))
    lost: list[Any] = [["in", 1, ["shape", "x"]], ["==", ["rank", "x"], ["+", ["length", "?t"], 1]]]
    cancelled: tuple[tuple[str, Any, dict[str, Any], list[Any]], ...] = (
        ("squeeze-of-unsqueeze", ["Squeeze", {"axes": "?v"}, unsqueeze], {**narrowing, **widening}, []),
        ("unsqueeze-of-squeeze", ["Unsqueeze", {"axes": "?u"}, squeeze], {**narrowing, **widening}, []),
        (
            "squeeze-of-reshape",
            ["Squeeze", {"axes": "?v"}, ["Reshape", {"shape": "?t"}, "x"]],
            {"?t": ["choice", wider, ["join", [1], ["shape", "x"]]], **narrowing},
            [],
        ),
        (
            "unsqueeze-of-reshape",
            ["Unsqueeze", {"axes": "?u"}, ["Reshape", {"shape": "?t"}, "x"]],
            {"?t": ["choice", [-1], [["dim", "x", 0], ["dim", "x", -1]]], **widening},
            lost,
        ),
        (
            "flatten-of-reshape",
            ["Flatten", {"axis": "?w"}, ["Reshape", {"shape": "?t"}, "x"]],
            {"?t": ["choice", wider, ["shape", "x"]], **flattening},
            [["==", ["rank", "x"], 2]],
        ),
    )
    return [
        declare("drop-identity", _FAMILY, [["Identity", "x"]], ["x"]),
        declare(
            "flatten-to-reshape",
            _FAMILY,
            [flatten],
            [["Reshape", {"shape": [0, -1]}, "x"]],
            attributes=flattening,
            where=[["==", "?w", 1], ["<", 1, ["rank", "x"]]],
        ),
        *(
            declare(
                f"reshape-of-{name}",
                _FAMILY,
                [["Reshape", {"shape": "?t"}, term]],
                [["Reshape", {"shape": "?t"}, "x"]],
                attributes={"?t": ["reshape", "x"], **kinds},
                where=[["not", ["in", 0, "?t"]]],
            )
            for name, term, kinds in inner
        ),
        *(
            declare(f"cancel-{name}", _FAMILY, [term], ["x"], attributes=kinds, where=where)
            for name, term, kinds, where in cancelled
        ),
    ]


def _turn(x: Any, p: Any = "?p") -> Any:
    return ["Transpose", {"perm": p}, x]


def _elementwise_rules() -> list[Rule]:
    """Functions of elements, beside constants that are turned the other way or are the same everywhere."""
    whole = {"z": {"constant": True}}
    return [
        *(
            declare(
                f"{f.name}-before-transpose",
                _FAMILY,
                [f(_turn("x"))],
                [_turn(f("x"))],
                attributes={**_TURN, **f.kinds},
            )
            for f in UNARY
        ),
        *(
            declare(
                f"{op.lower()}-before-transposes",
                _FAMILY,
                [[op, _turn("x"), _turn("z")]],
                [_turn([op, "x", "z"])],
                attributes=_TURN,
            )
            for op in _BINARY
        ),
        *(
            declare(
                f"{op.lower()}-of-{name}-before-transpose{side}",
                _FAMILY,
                [[op, *(_turn(v) if v == "x" else v for v in two)]],
                [_turn([op, *(turned if v == "z" else v for v in two)])],
                whole,
                attributes=_TURN,
                where=[condition],
            )
            for op in _BINARY
            for side, two in _operands(op)
            for name, turned, condition in (
                ("constant", _turn("z", ["inverse", "?p"]), ["==", ["rank", "z"], _RANK]),
                ("scalar", "z", ["==", ["elements", "z"], 1]),
            )
            if (op, name) != ("Mul", "scalar")  # `scale-past-transpose`
        ),
    ]


_CHANNELS_LAST = [0, 2, 3, 1]
_CHANNELS_FIRST = [0, 3, 1, 2]


def _channel_rules() -> list[Rule]:
    """What is added to each channel, or scales it, where a transpose takes the channels to the end or back."""
    sides: tuple[tuple[str, list[int], list[Any], list[int]], ...] = (
        ("last", _CHANNELS_LAST, ["c"], [-1, 1, 1]),
        ("first", _CHANNELS_FIRST, ["c", 1, 1], [-1]),
    )
    return [
        declare(
            f"{op.lower()}-before-channels-{name}{side}",
            _FAMILY,
            [[op, *(_turn(v, perm) if v == "x" else v for v in two)]],
            [_turn([op, *(["Reshape", {"shape": flat}, v] if v == "z" else v for v in two)], perm)],
            {"x": {"shape": ["n", "a", "b", "d"]}, "z": {"shape": shape, "constant": True}},
        )
        for op in _BINARY
        for side, two in _operands(op)
        for name, perm, shape, flat in sides
    ]


def _axis_rules() -> list[Rule]:
    """Operators that look along axes, which a transpose takes elsewhere. The last axis stays the last of a norm."""
    back = ["*", -1, _RANK]

    def there(axis: Any) -> Any:
        """The axis of x that becomes this one."""
        return ["+", ["get", "?p", axis], back]

    axes = [["get", "?r", i] for i in (0, 1)]
    norm = ["LayerNormalization", {"epsilon": "?e"}]
    row = {"shape": ["n"]}
    stays = [["==", ["get", "?p", -1], ["+", _RANK, -1]]]
    return [
        declare(
            "softmax-before-transpose",
            _FAMILY,
            [["Softmax", {"axis": "?a"}, _turn("x")]],
            [_turn(["Softmax", {"axis": there("?a")}, "x"])],
            attributes={**_TURN, "?a": ["axis", "x"]},
        ),
        *(
            declare(
                f"{op.lower()}-of-{count}-before-transpose",
                _FAMILY,
                [[op, {"axes": "?r", "keepdims": 1}, _turn("x")]],
                [_turn([op, {"axes": ["list", *map(there, axes[:count])], "keepdims": 1}, "x"])],
                attributes={**_TURN, "?r": ["choice", *kinds]},
                where=[["==", ["length", "?r"], count]],
            )
            for op in ("ReduceSum", "ReduceMean")
            for count, kinds in ((1, ([-1], [-2], [-3])), (2, ([-2, -1], [-3, -2], [-3, -1])))
        ),
        *(
            declare(
                f"layer-norm{'-with-shift' if 'c' in more else ''}-before-transpose",
                _FAMILY,
                [[*norm, _turn("x"), *more]],
                [_turn([*norm, "x", *more])],
                {"x": {"shape": ["...b", "n"]}, **dict.fromkeys(more, row)},
                attributes={**_TURN, "?e": ["uniform"]},
                where=stays,
            )
            for more in (("g",), ("g", "c"))
        ),
        declare(
            "transpose-of-ones-to-reshape",
            _FAMILY,
            [_turn("x")],
            [["Reshape", {"shape": ["compose", ["shape", "x"], "?p"]}, "x"]],
            attributes=_TURN,
            where=[["static", ["shape", "x"]], ["keeps_order", ["shape", "x"], "?p"], ["not", ["is_identity", "?p"]]],
        ),
    ]


def _part_rules() -> list[Rule]:
    """A part of a split as a slice, which knows how to move; and slices end to end as one split."""

    def part(i: int, count: int) -> Rule:
        ends = [["+", 0, *(["get", "?s", j] for j in range(n))] for n in (i, i + 1)]
        return declare(
            f"part-{i}-of-{count}-to-slice",
            _FAMILY,
            [["@", i, ["Split", {"axis": "?k", "split": "?s"}, "x"]]],
            [
                [
                    "Slice",
                    {
                        "axes": ["list", "?k"],
                        **{k: ["list", e] for k, e in zip(("starts", "ends"), ends, strict=True)},
                        "steps": [1],
                    },
                    "x",
                ]
            ],
            attributes={"?k": ["axis", "x"], "?s": ["partition", "x", "?k", count]},
            where=[["==", ["length", "?s"], count]],
        )

    axis = ["get", "?a", 0]
    size = ["dim", "x", axis]
    cut, end = ["get", "?b", 0], ["get", "?e", 0]
    halves = declare(
        "slices-to-split",
        _FAMILY,
        [
            ["Slice", {"axes": "?a", "starts": [0], "ends": "?b", "steps": [1]}, "x"],
            ["Slice", {"axes": "?a", "starts": "?b", "ends": "?e", "steps": [1]}, "x"],
        ],
        [
            ["@", i, ["Split", {"axis": axis, "split": ["list", cut, ["+", size, ["*", -1, cut]]]}, "x"]]
            for i in range(2)
        ],
        attributes={
            "?a": ["choice", [-1], [-2], [-3]],
            "?b": ["choice", [1], [2]],
            "?e": ["choice", [size], [_TO_THE_END]],
        },
        where=[["==", ["length", "?a"], 1], ["<=", 0, cut], ["<=", cut, size], ["<=", size, end]],
    )
    return [*(part(i, count) for count in (2, 3) for i in range(count)), halves]


def _pad_rules() -> list[Rule]:
    """Pads of images: none, twice the same, and those that a mean counts."""
    both = ["list", *(["+", ["get", "?p", i], ["get", "?q", i]] for i in range(8))]
    image = {"x": {"shape": ["n", "c", "h", "w"]}}
    filled = {"constant_value": "?v"}
    pool = {"kernel_shape": "?w", "strides": "?s", "count_include_pad": 1}
    around = ["list", *(["+", ["get", "?p", i], ["get", "?q", j]] for i, j in enumerate((2, 3, 6, 7)))]
    return [
        declare(
            "drop-empty-pad",
            _FAMILY,
            [["Pad", {"pads": "?p", **filled}, "x"]],
            ["x"],
            image,
            attributes={"?p": ["choice", [0] * 8, [0] * 7 + [1]], "?v": ["choice", 0.0, 1.0]},
        ),
        declare(
            "compose-pads",
            _FAMILY,
            [["Pad", {"pads": "?q", **filled}, ["Pad", {"pads": "?p", **filled}, "x"]]],
            [["Pad", {"pads": both, **filled}, "x"]],
            image,
            attributes={"?p": ["integers", 0, 1, 8], "?q": ["integers", 0, 1, 8], "?v": ["choice", 0.0, 1.0]},
        ),
        declare(
            "pad-into-average",
            _FAMILY,
            [["AveragePool", {"pads": "?p", **pool}, ["Pad", {"pads": "?q"}, "x"]]],
            [["AveragePool", {"pads": around, **pool}, "x"]],
            image,
            attributes={
                "?w": ["integers", 2, 3, 2],
                "?s": ["integers", 1, 2, 2],
                "?p": ["choice", [0] * 4, [1, 0, 0, 0]],
                "?q": ["choice", [0, 0, 1, 1, 0, 0, 1, 1], [0, 0, 0, 1, 0, 0, 1, 0]],
            },
            where=[["==", ["get", "?q", i], 0] for i in (0, 1, 4, 5)],
        ),
    ]


def movement_rules() -> list[Rule]:
    """All of them, without certificates."""
    return [
        *_relabelling_rules(),
        *_elementwise_rules(),
        *_channel_rules(),
        *_axis_rules(),
        *_part_rules(),
        *_pad_rules(),
    ]


def false_movement_controls() -> list[Rule]:
    """Movements that do not pass, each well typed where it is wrong."""
    square = {"x": {"shape": ["n", "n"]}, "z": {"shape": ["n", "n"]}}
    row = {"shape": ["n"]}

    def control(name: str, source: Any, target: Any, variables: Any, **rest: Any) -> Rule:
        return declare(name, "control", [source], [target], variables, **rest)

    return [
        control("softmax-keeps-its-axis", ["Softmax", _turn("x")], _turn(["Softmax", "x"]), square, attributes=_TURN),
        control(
            "constant-is-not-turned",
            ["Add", _turn("x", [1, 0]), "z"],
            _turn(["Add", "x", "z"], [1, 0]),
            square,
        ),
        control(
            "norm-of-another-axis",
            ["LayerNormalization", _turn("x", [1, 0]), "g"],
            _turn(["LayerNormalization", "x", "g"], [1, 0]),
            {"x": square["x"], "g": row},
        ),
        control(
            "transpose-is-a-reshape",
            _turn("x", [1, 0]),
            ["Reshape", {"shape": ["list", ["dim", "x", 1], ["dim", "x", 0]]}, "x"],
            {"x": {"shape": ["m", "n"]}},
        ),
        control(
            "row-is-added-to-columns",
            ["Add", _turn("x", [1, 0]), "g"],
            _turn(["Add", "x", "g"], [1, 0]),
            {"x": square["x"], "g": row},
        ),
        control(
            "parts-of-a-split-are-equal",
            ["@", 1, ["Split", {"axis": _LAST, "split": [2, 2]}, "x"]],
            ["Slice", {"axes": [_LAST], "starts": [0], "ends": [2], "steps": [1]}, "x"],
            {"x": {"shape": ["m", 4]}},
        ),
        control(
            "a-mean-counts-what-lies-around",
            [
                "AveragePool",
                {"kernel_shape": [2, 2], "strides": [1, 1], "pads": [0, 0, 0, 0], "count_include_pad": 0},
                ["Pad", {"pads": [0, 0, 1, 1, 0, 0, 1, 1]}, "x"],
            ],
            [
                "AveragePool",
                {"kernel_shape": [2, 2], "strides": [1, 1], "pads": [1, 1, 1, 1], "count_include_pad": 0},
                "x",
            ],
            {"x": {"shape": ["n", "c", "h", "w"]}},
        ),
    ]
