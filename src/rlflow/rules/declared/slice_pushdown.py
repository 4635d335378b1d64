"""Declared rules that read before they compute: of a layer whose result is read in part, that part alone is computed.

A head that reads one token of a transformer, by Slice or by Gather, so leaves one token for its last layers to do.
All rules lead towards the inputs.
"""

from __future__ import annotations

from typing import Any

from rlflow.rules.declared.elementary import UNARY
from rlflow.rules.declared.reading import EXTENTS, GATHER, PICK, SLICE, TO_THE_END, Reading
from rlflow.rules.declared.slices import slice_rules
from rlflow.rules.rule import Rule, declare

_LAST = -1
_ROWS = -2
_IMAGES = -4
_CHANNELS = -3

_COMMUTATIVE = ("Add", "Mul")
_BINARY = (*_COMMUTATIVE, "Sub", "Div")
_REDUCTIONS = ("ReduceSum", "ReduceMean")


def _elementwise_rules(read: Reading) -> list[Rule]:
    """Of two operands, the one that does not reach to the axis is not read."""
    both = [["==", ["dim", "x", read.axis], ["dim", "z", read.axis]]]
    short = [["<", ["rank", "z"], ["*", -1, read.axis]]]
    sides = [
        *((op, "", ("x", "z")) for op in _BINARY),
        *((op, "-from-right", ("z", "x")) for op in _BINARY if op not in _COMMUTATIVE),
    ]
    return [
        *(read.before(f.name, f("x"), f(read("x")), attributes=f.kinds) for f in UNARY),
        *(
            read.before(name, ["Pow", {"exponent": power}, "x"], ["Pow", {"exponent": power}, read("x")])
            for name, power in (("square", 2.0), ("cube", 3.0), ("root", 0.5))
        ),
        *(
            read.before(f"{op.lower()}-of-two", [op, "x", "z"], [op, read("x"), read("z")], where=both)
            for op in _BINARY
        ),
        *(
            read.before(
                f"{op.lower()}-of-one{side}", [op, *two], [op, *(read(v) if v == "x" else v for v in two)], where=short
            )
            for op, side, two in sides
        ),
    ]


def _sum_rules(read: Reading) -> list[Rule]:
    """Sums of several operands, of which the second may be a bias (as `bias-add-to-sum` and its like make them)."""
    along = {name: ["dim", name, read.axis] for name in "xyz"}
    like_x = {name: ["==", along["x"], along[name]] for name in "yz"}
    short = ["<", ["rank", "y"], ["*", -1, read.axis]]
    cases: tuple[tuple[str, str, list[Any]], ...] = (
        ("sum-of-two", "xy", [like_x["y"]]),
        ("sum-of-one-and-bias", "xy", [short]),
        ("sum-of-three", "xyz", [like_x["y"], like_x["z"]]),
        ("sum-of-two-and-bias", "xyz", [short, like_x["z"]]),
    )
    return [
        read.before(
            name,
            ["Sum", *operands],
            ["Sum", *(v if v == "y" and name.endswith("bias") else read(v) for v in operands)],
            where=where,
        )
        for name, operands, where in cases
    ]


def _fused_rules(read: Reading) -> list[Rule]:
    """A product of all rows as one Gemm (`linear-to-gemm`): of some rows, as the product that it was."""
    rows, width, columns = ["*", ["dim", "x", 0], ["dim", "x", 1]], ["dim", "x", 2], ["dim", "w", 1]
    flat, full = [rows, width], [["dim", "x", 0], ["dim", "x", 1], columns]
    return [
        read.before(
            "reshaped-gemm",
            ["Reshape", {"shape": "?r"}, ["Gemm", ["Reshape", {"shape": "?q"}, "x"], "w", "c"]],
            ["Add", ["MatMul", read("x"), "w"], "c"],
            {"x": {"shape": ["b", "t", "k"]}, "w": {"shape": ["k", "n"]}, "c": {"shape": ["n"]}},
            attributes={"?q": ["choice", flat, [_LAST, width]], "?r": ["choice", full, [_LAST, *full[1:]]]},
            where=[
                ["<", read.axis, _LAST],
                ["in", "?q", [flat, [_LAST, width]]],
                ["in", "?r", [full, [_LAST, *full[1:]]]],
            ],
        )
    ]


def _row_rules(read: Reading) -> list[Rule]:
    """Products, normalisations and sums of rows, where other axes than those of the rows are read."""
    above = [["<", read.axis, _LAST]]
    matrix = {"shape": ["k", "n"]}
    parallel = [["<", read.axis, _ROWS], ["==", ["dim", "x", read.axis], ["dim", "w", read.axis]]]
    row = {"shape": ["n"]}
    norm = ["LayerNormalization", {"epsilon": "?n"}]
    epsilon = {"?n": ["uniform"]}
    return [
        read.before("product", ["MatMul", "x", "w"], ["MatMul", read("x"), "w"], {"w": matrix}, where=above),
        read.before("parallel-products", ["MatMul", "x", "w"], ["MatMul", read("x"), read("w")], where=parallel),
        read.before(
            "softmax",
            ["Softmax", {"axis": "?s"}, "x"],
            ["Softmax", {"axis": "?s"}, read("x")],
            attributes={"?s": ["axis", "x"]},
            where=[["<", read.axis, "?s"]],
        ),
        *(
            read.before(
                f"layer-norm{'-with-shift' if 'c' in more else ''}",
                [*norm, "x", *more],
                [*norm, read("x"), *more],
                dict.fromkeys(more, row),
                attributes=epsilon,
                where=above,
            )
            for more in (("g",), ("g", "c"))
        ),
        *(
            read.before(
                f"{op.lower()}-of-rows",
                [op, {"axes": [_LAST], "keepdims": 1}, "x"],
                [op, {"axes": [_LAST], "keepdims": 1}, read("x")],
                where=[*above, *read.some(read.axis)],
            )
            for op in _REDUCTIONS
        ),
    ]


def _turned_rules(read: Reading) -> list[Rule]:
    """Where the axis has others before it that must stay where they are: what is read keeps its rank."""
    line = [["==", ["dim", "z", read.axis], 1]]
    sides = [
        *((op, "", ("x", "z")) for op in _BINARY),
        *((op, "-from-right", ("z", "x")) for op in _BINARY if op not in _COMMUTATIVE),
    ]
    matrices = {"x": {"shape": ["...b", "m", "k"]}, "w": {"shape": ["...c", "k", "n"]}}
    rank = ["*", -1, ["length", "?p"]]
    other = [["!=", read.axis, "?j"]]
    reduced = {"axes": "?r", "keepdims": 1}
    some = ["choice", [-1], [-2], [-3], [-2, -1], [-3, -2], [-4, -1]]
    return [
        *(
            read.before(
                f"{op.lower()}-of-lines{side}", [op, *two], [op, *(read(v) if v == "x" else v for v in two)], where=line
            )
            for op, side, two in sides
        ),
        read.before("rows", ["MatMul", "x", "w"], ["MatMul", read("x", _ROWS), "w"], matrices, axis=_ROWS),
        read.before("columns", ["MatMul", "x", "w"], ["MatMul", "x", read("w", _LAST)], matrices, axis=_LAST),
        read.before(
            "softmax-of-other-axis",
            ["Softmax", {"axis": "?s"}, "x"],
            ["Softmax", {"axis": "?s"}, read("x")],
            attributes={"?s": ["axis", "x"]},
            where=[["<", "?s", read.axis]],
        ),
        read.before(
            "transpose",
            ["Transpose", {"perm": "?p"}, "x"],
            ["Transpose", {"perm": "?p"}, read("x", ["+", ["get", "?p", read.axis], rank])],
            attributes={"?p": ["permutation", "x"]},
        ),
        *(
            read.before(
                f"join-of-{len(parts)}",
                ["Concat", {"axis": "?j"}, *parts],
                ["Concat", {"axis": "?j"}, *map(read, parts)],
                attributes={"?j": ["axis", "x"]},
                where=other,
            )
            for parts in ("xy", "xyz")
        ),
        *(
            read.before(
                f"{op.lower()}-of-other-axes",
                [op, reduced, "x"],
                [op, reduced, read("x")],
                attributes={"?r": some},
                where=[["not", ["in", read.axis, "?r"]], ["!=", "?r", [_LAST]], *read.some(read.axis)],
            )
            for op in _REDUCTIONS
        ),
    ]


_IMAGE = {"shape": ["n", "c", "h", "w"]}
_WINDOW = {"strides": "?s", "pads": "?p", "dilations": "?d"}
_WINDOWS = {"?s": ["integers", 1, 2, 2], "?p": ["integers", 0, 2, 4], "?d": ["integers", 1, 2, 2]}
_POOLS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("MaxPool", {"kernel_shape": "?w", "strides": "?s", "pads": "?q", "dilations": [1, 1]}),
    ("AveragePool", {"kernel_shape": "?w", "strides": "?s", "pads": "?q", "count_include_pad": "?c"}),
    ("GlobalAveragePool", {}),
)
_POOLED = {
    "?w": ["integers", 1, 3, 2],
    "?s": ["integers", 1, 2, 2],
    "?q": ["integers", 0, 1, 4],
    "?c": ["choice", 0, 1],
}


def _image_rules(read: Reading) -> list[Rule]:
    """Images of a batch, and channels: of a convolution those of its filters, of a pool its own."""
    grouped = {**_WINDOW, "group": "?g"}
    biases: tuple[tuple[str, ...], ...] = ((), ("b",))
    operands = {"x": _IMAGE, "f": {"shape": ["m", "k", "p", "q"]}, "b": {"shape": ["m"]}}
    return [
        *(
            read.before(
                f"convolution{'-with-bias' if bias else ''}",
                ["Conv", grouped, "x", "f", *bias],
                ["Conv", grouped, read("x", _IMAGES), "f", *bias],
                {name: operands[name] for name in ("x", "f", *bias)},
                axis=_IMAGES,
                attributes={**_WINDOWS, "?g": ["groups", "x", "f"]},
            )
            for bias in biases
        ),
        *(
            read.before(
                f"filters{'-with-bias' if bias else ''}",
                ["Conv", _WINDOW, "x", "f", *bias],
                ["Conv", _WINDOW, "x", read("f", _IMAGES), *(read(b, _LAST) for b in bias)],
                {name: operands[name] for name in ("x", "f", *bias)} | {"f": {"shape": ["m", "c", "p", "q"]}},
                axis=_CHANNELS,
                attributes=_WINDOWS,
            )
            for bias in biases
        ),
        *(
            read.before(
                f"{op.lower()}-of-{name}",
                [op, attributes, "x"],
                [op, attributes, read("x", axis)],
                {"x": _IMAGE},
                axis=axis,
                attributes={name: kind for name, kind in _POOLED.items() if name in attributes.values()},
                where=read.some(axis),
            )
            for op, attributes in _POOLS
            for name, axis in (("images", _IMAGES), ("channels", _CHANNELS))
        ),
    ]


def reading_rules() -> list[Rule]:
    """All of them, without certificates."""
    any_rank = (_elementwise_rules, _sum_rules, _fused_rules, _row_rules)
    return [
        *(rule for read in (SLICE, GATHER) for rules in any_rank for rule in rules(read)),
        *(rule for read in (SLICE, PICK) for rules in (_turned_rules, _image_rules) for rule in rules(read)),
        *slice_rules(),
    ]


_BACKWARDS = {"starts": [-1], "ends": [-TO_THE_END], "steps": [-1]}
"""Keeps the size of the axis, so that types tell nothing."""


def false_reading_controls() -> list[Rule]:
    """Readings that may not come first, each well typed where it is wrong."""

    def backwards(axis: int, x: Any) -> Any:
        return ["Slice", {"axes": [axis], **_BACKWARDS}, x]

    def control(name: str, source: Any, target: Any, variables: Any = None, **rest: Any) -> Rule:
        return declare(name, "control", [source], [target], variables, **rest)

    square = {"x": {"shape": ["n", "n"]}, "w": {"shape": ["n", "n"]}}
    images = {"x": {"shape": ["n", 4, "h", "w"]}, "f": {"shape": [4, 2, "p", "q"]}}
    two = {"axes": [_CHANNELS], "starts": [0], "ends": [2], "steps": [1]}
    filters = {**two, "axes": [_IMAGES]}
    whole = {"strides": [1, 1], "pads": [0, 0, 0, 0], "dilations": [1, 1]}
    mean = {"axes": [_LAST], "keepdims": 1}
    return [
        control(
            "softmax-of-some-is-some-of-softmax",
            SLICE(["Softmax", "x"], _LAST),
            ["Softmax", SLICE("x", _LAST)],
            attributes=EXTENTS,
        ),
        control(
            "gather-past-the-mean-of-its-axis",
            ["Gather", {"axis": _LAST}, ["ReduceMean", mean, "x"], "i"],
            ["ReduceMean", mean, ["Gather", {"axis": _LAST}, "x", "i"]],
            {"x": {"shape": ["m", "n"]}, "i": {"shape": [1]}},
        ),
        control(
            "rows-of-a-product-are-columns-of-the-right",
            backwards(_ROWS, ["MatMul", "x", "w"]),
            ["MatMul", "x", backwards(_LAST, "w")],
            square,
        ),
        control(
            "slice-keeps-its-axis-past-transpose",
            backwards(_LAST, ["Transpose", {"perm": [1, 0]}, "x"]),
            ["Transpose", {"perm": [1, 0]}, backwards(_LAST, "x")],
            {"x": square["x"]},
        ),
        control(
            "layer-norm-forgets-what-is-turned",
            backwards(_LAST, ["LayerNormalization", "x", "g"]),
            ["LayerNormalization", backwards(_LAST, "x"), "g"],
            {"x": {"shape": ["m", "n"]}, "g": {"shape": ["n"]}},
        ),
        control(
            "gather-of-one-addend",
            ["Gather", {"axis": _LAST}, ["Add", "x", "z"], "i"],
            ["Add", ["Gather", {"axis": _LAST}, "x", "i"], "z"],
            {"x": {"shape": ["m", "n"]}, "z": {"shape": ["n"]}, "i": {"shape": ["n"]}},
        ),
        control(
            "gather-along-another-axis",
            ["Gather", {"axis": _ROWS}, ["Relu", "x"], "i"],
            ["Relu", ["Gather", {"axis": _LAST}, "x", "i"]],
            {"x": square["x"], "i": {"shape": ["n"]}},
        ),
        control(
            "first-two-filters-of-two-groups",
            ["Slice", two, ["Conv", {**whole, "group": 2}, "x", "f"]],
            ["Conv", {**whole, "group": 2}, "x", ["Slice", filters, "f"]],
            images,
        ),
        control(
            "a-join-is-turned-part-by-part",
            backwards(_LAST, ["Concat", {"axis": _LAST}, "x", "w"]),
            ["Concat", {"axis": _LAST}, backwards(_LAST, "x"), backwards(_LAST, "w")],
            square,
        ),
        control(
            "a-slice-of-a-slice-starts-over",
            SLICE(["Slice", {"axes": [_LAST], "starts": [1], "ends": [3], "steps": [1]}, "x"], _LAST),
            SLICE("x", _LAST),
            attributes={"?b": ["choice", [0]], "?e": ["choice", [1], [2]], "?t": ["choice", [1]]},
        ),
    ]
