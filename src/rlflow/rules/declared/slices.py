"""Declared rules of slices, where the sizes along their axis tell: of Gemm, of joins, of heads and of other slices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rlflow.rules.declared.reading import BEGIN, END, EXTENT, EXTENTS, SLICE, TO_THE_END
from rlflow.rules.rule import Rule, declare

_FAMILY = "reading"
_LAST = -1
_ROWS = -2


def _gemm_rules() -> list[Rule]:
    """Rows of the left matrix; columns of the right one, however it is stored, and of what is added."""
    factors = {"alpha": "?alpha", "beta": "?beta", "transB": "?turned"}
    kinds = {"?alpha": ["uniform"], "?beta": ["uniform"], "?turned": ["choice", 0, 1]}
    operands = {"x": {"shape": ["m", "k"]}, "w": {"shape": ["l", "n"]}, "c": {"shape": ["o"]}}
    right = ["+", _LAST, ["*", -1, "?turned"]]
    return [
        rule
        for more in ((), ("c",))
        for shapes in [{name: operands[name] for name in ("x", "w", *more)}]
        for suffix in ["-with-bias" if more else ""]
        for rule in (
            SLICE.before(
                f"gemm{suffix}",
                ["Gemm", factors, "x", "w", *more],
                ["Gemm", factors, SLICE("x", _ROWS), "w", *more],
                shapes,
                axis=_ROWS,
                attributes=kinds,
            ),
            SLICE.before(
                f"gemm-of-columns{suffix}",
                ["Gemm", factors, "x", "w", *more],
                ["Gemm", factors, "x", SLICE("w", right), *(SLICE(c, _LAST) for c in more)],
                shapes,
                axis=_LAST,
                attributes=kinds,
                where=[["!=", ["dim", c, 0], 1] for c in more],
            ),
        )
    ]


def _forward(name: str, begin: str = "?b", end: str = "?e") -> list[Any]:
    """Conditions: a slice from the front, element by element."""
    return [["<=", 0, ["get", begin, 0]], ["<=", 0, ["get", end, 0]], ["==", name, [1]]]


def _joined_rules() -> list[Rule]:
    """A slice of a join along its own axis that lies within one part."""
    along = ["dim", "x", SLICE.axis]
    kinds = {"?j": ["choice", SLICE.axis]}
    behind = {"?b": ["choice", [along], [["+", along, 1]]], "?e": ["choice", [["+", along, 2]], [TO_THE_END]]}
    within = [["==", SLICE.axis, "?j"], *_forward("?t")]
    moved = {k: ["list", ["+", at, ["*", -1, along]]] for k, at in (("starts", BEGIN), ("ends", END))}
    return [
        *(
            SLICE.before(
                f"first-of-{len(parts)}-joined",
                ["Concat", {"axis": "?j"}, *parts],
                SLICE("x"),
                attributes=kinds,
                where=[*within, ["<=", END, along]],
            )
            for parts in ("xy", "xyz")
        ),
        SLICE.before(
            "second-of-2-joined",
            ["Concat", {"axis": "?j"}, "x", "y"],
            ["Slice", {"axes": "?axis", **moved, "steps": "?t"}, "y"],
            attributes={**kinds, **behind},
            where=[*within, ["<=", along, BEGIN], ["<=", along, END]],
        ),
    ]


def _reshape_rules() -> list[Rule]:
    """The last axis taken apart, or the last two joined (attention's heads), where an axis before them is read."""
    heads = {"x": {"shape": ["b", "t", "h", "d"]}}
    flat = {"x": {"shape": ["b", "t", "c"]}}
    first, second = (["dim", "x", i] for i in (0, 1))
    width = ["*", ["dim", "x", 2], ["dim", "x", 3]]
    kept = [["in", ["get", "?r", 0], [0, _LAST, first]], ["in", ["get", "?r", 1], [0, second]]]

    def reshape(shape: Any, x: Any) -> Any:
        return ["Reshape", {"shape": shape}, x]

    return [
        SLICE.before(
            "heads-joined",
            reshape("?r", "x"),
            reshape([0, 0, _LAST], SLICE("x", -3)),
            heads,
            axis=_ROWS,
            attributes={
                "?r": ["choice", [0, 0, _LAST], [0, second, _LAST], [first, second, width], [_LAST, second, width]]
            },
            where=[["==", ["length", "?r"], 3], *kept, ["in", ["get", "?r", 2], [_LAST, width]]],
        ),
        SLICE.before(
            "heads-parted",
            reshape("?r", "x"),
            reshape(["list", 0, 0, ["get", "?r", 2], ["get", "?r", 3]], SLICE("x", _ROWS)),
            flat,
            axis=-3,
            attributes={
                "?r": ["choice", *([a, b, *c] for a in (0, first) for b in (0, second) for c in ([2, -1], [-1, 3]))]
            },
            where=[["==", ["length", "?r"], 4], *kept, ["!=", ["get", "?r", 2], 0]],
        ),
    ]


def _nested_rules() -> list[Rule]:
    """A slice of a slice, along one axis or along two; and a slice that is all there is."""
    inner = {"starts": "?c", "ends": "?f", "steps": "?u"}
    kinds = {name: EXTENTS[of] for name, of in (("?c", "?b"), ("?f", "?e"), ("?u", "?t"))}
    start = ["+", ["get", "?c", 0], BEGIN]
    stop = ["+", ["get", "?c", 0], END]
    limit = ["get", "?f", 0]
    forward = [*_forward("?t"), *_forward("?u", "?c", "?f")]
    sliced = ["Slice", {"axes": "?axis", **inner}, "x"]

    def once(end: Any) -> Any:
        return ["Slice", {"axes": "?axis", "starts": ["list", start], "ends": ["list", end], "steps": [1]}, "x"]

    whole = [["==", "?b", [0]], ["==", "?t", [1]], ["<=", ["dim", "x", SLICE.axis], END]]
    joined = {"axes": ["join", "?axis", "?k"]}
    joined |= {k: ["join", a, b] for k, a, b in zip(inner, EXTENT.values(), inner.values(), strict=True)}
    return [
        SLICE.before("shorter-slice", sliced, once(stop), attributes=kinds, where=[*forward, ["<=", stop, limit]]),
        SLICE.before("longer-slice", sliced, once(limit), attributes=kinds, where=[*forward, ["<", limit, stop]]),
        SLICE.before(
            "slice-of-other-axis",
            ["Slice", {"axes": "?k", **inner}, "x"],
            ["Slice", joined, "x"],
            attributes={"?k": ["choice", *([a] for a in (-1, -2, -3))], **kinds},
            where=[["==", ["length", "?k"], 1], ["!=", "?axis", "?k"]],
        ),
        replace(SLICE.before("all", "x", "x", where=whole), name="drop-whole-slice"),
    ]


def _single_rules() -> list[Rule]:
    """An element along an axis as a slice of one, which the other rules know how to move."""
    at = ["value", "i"]
    return [
        declare(
            f"gather-of-{name}-to-slice",
            _FAMILY,
            [["Gather", {"axis": "?axis"}, "x", "i"]],
            [
                [
                    "Squeeze",
                    {"axes": ["list", "?axis"]},
                    [
                        "Slice",
                        {"axes": ["list", "?axis"], "starts": ["list", at], "ends": ["list", end], "steps": [1]},
                        "x",
                    ],
                ]
            ],
            {"i": {"shape": [], "literal": True}},
            attributes={"?axis": ["axis", "x"]},
            where=[[relation, at, -1]],
        )
        for name, relation, end in (("one", "!=", ["+", at, 1]), ("last", "==", TO_THE_END))
    ]


def slice_rules() -> list[Rule]:
    """All of them, without certificates."""
    return [*_gemm_rules(), *_joined_rules(), *_reshape_rules(), *_nested_rules(), *_single_rules()]
