"""Families of expressions that the generator enumerates: variables of some shapes, and operators over them.

Shapes and attributes are examples: an equality that is found at them is widened as far as it verifies
(`synthesis/generalise.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlflow.rules.expression import TO_THE_END
from rlflow.synthesis.enumeration import Leaf, OperatorChoice


@dataclass(frozen=True)
class Family:
    """Leaves and operators over them.

    `dimensions` numbers the symbols of the leaves' shapes for the search: all different, none of them 1, or equalities
    come up that hold only at equal sizes.
    """

    name: str
    leaves: tuple[Leaf, ...]
    operators: tuple[OperatorChoice, ...]
    dimensions: Mapping[str, int]


def _leaves(**shapes: tuple[int | str, ...]) -> tuple[Leaf, ...]:
    """Make a leaf for each letter of a name: ab=("m", "k") makes a and b, both of shape (m, k)."""
    return tuple(Leaf(letter, shape) for letters, shape in shapes.items() for letter in letters)


_MATRICES = {"m": 2, "k": 3, "n": 4}
_MATMUL = OperatorChoice("MatMul", 2, min_rank=2)
_ADD, _SUB, _MUL, _DIV = (OperatorChoice(op, 2) for op in ("Add", "Sub", "Mul", "Div"))
_RELU = OperatorChoice("Relu", 1)

ALGEBRA = Family(
    "algebra",
    _leaves(abc=("m", "k"), vw=("k", "n"), u=("n", "n"), st=(), r=("k",), q=("n",), p=("m", 1)),
    (_MATMUL, _ADD, _MUL, _RELU, OperatorChoice("Transpose", 1, {"perm": (1, 0)})),
    _MATRICES,
)

_REDUCTIONS = tuple(OperatorChoice(op, 1, {"axes": (-1,)}, min_rank=2) for op in ("ReduceSum", "ReduceMean"))

TRANSFORMER = Family(
    "transformer",
    _leaves(ab=("m", "k"), w=("k", "n"), s=(), r=("k",), p=("m", 1)),
    (
        *(_MATMUL, _ADD, _MUL, _DIV),
        *(OperatorChoice(op, 1) for op in ("Reciprocal", "Exp", "Erf", "Tanh", "Sqrt", "Sigmoid")),
        *_REDUCTIONS,
        OperatorChoice("Softmax", 1, min_rank=2),
    ),
    _MATRICES,
)

DIFFERENCE = Family(
    "difference",
    _leaves(ab=("m", "k"), w=("k", "n"), s=(), r=("k",), p=("m", 1)),
    (*(_MATMUL, _ADD, _SUB, _MUL), OperatorChoice("Neg", 1), *_REDUCTIONS),
    _MATRICES,
)

JOIN = Family(
    "join",
    _leaves(abc=("m", "k"), vw=("k", "n"), s=(), r=("k",), p=("m", 1)),
    (
        *(_MATMUL, _ADD, _MUL, _RELU),
        *(OperatorChoice("Concat", 2, {"axis": axis}, min_rank=2) for axis in (-1, -2)),
    ),
    _MATRICES,
)

_WINDOW: Mapping[str, Any] = {"strides": (1, 1), "pads": (1, 1, 1, 1)}
_POOL: Mapping[str, Any] = {**_WINDOW, "kernel_shape": (3, 3)}

CONVOLUTION = Family(
    "convolution",
    _leaves(
        xy=("n", "c", "h", "w"), fg=("m", "c", "p", "q"), u=("c", "c", "p", "q"), s=(), b=("m", 1, 1), d=("c", 1, 1)
    ),
    (
        OperatorChoice("Conv", 2, {**_WINDOW, "dilations": (1, 1)}, min_rank=4),
        *(_ADD, _MUL, _RELU),
        OperatorChoice("AveragePool", 1, {**_POOL, "count_include_pad": 1}, min_rank=4),
        OperatorChoice("MaxPool", 1, {**_POOL, "dilations": (1, 1)}, min_rank=4),
        *(OperatorChoice("Concat", 2, {"axis": axis}, min_rank=4) for axis in (-4, -3)),
    ),
    {"p": 2, "q": 3, "n": 4, "c": 5, "h": 6, "w": 7, "m": 8},
)


def _slice(axis: int, start: int, end: int) -> OperatorChoice:
    return OperatorChoice("Slice", 1, {"axes": (axis,), "starts": (start,), "ends": (end,), "steps": (1,)}, min_rank=2)


MOVEMENT = Family(
    "movement",
    (*_leaves(p=("m", "k"), w=("k", "n"), ab=("l", "m", "k")), Leaf("i", ("j",), (3, 0, 2, 1, 3))),
    (
        *(_MATMUL, _ADD, _RELU),
        *(OperatorChoice("Transpose", 1, {"perm": perm}) for perm in ((1, 2, 0), (2, 0, 1))),
        *(OperatorChoice("Concat", 2, {"axis": axis}, min_rank=2) for axis in (-1, -2)),
        *(
            OperatorChoice("Split", 1, {"axis": -1, "split": sizes}, min_rank=2, output=output)
            for sizes in ((2, 2), (4, 4))
            for output in (0, 1)
        ),
        *(_slice(-1, *bounds) for bounds in ((0, 2), (1, 3), (2, TO_THE_END))),
        *(_slice(-2, *bounds) for bounds in ((0, 2), (0, TO_THE_END), (1, 2), (1, TO_THE_END))),
        *(_slice(-2, *bounds) for bounds in ((1, 3), (2, TO_THE_END))),
        *(OperatorChoice("Gather", 1, {"axis": axis}, min_rank=2, selector="i") for axis in (-1, -2)),
        OperatorChoice("Reshape", 1, {"shape": (0, -1)}),
    ),
    {"j": 5, "k": 4, "l": 3, "m": 7, "n": 6},
)
"""Slices of slices are among these slices, whichever of the two ends first; Splits give halves or undo a Concat."""

FAMILIES: Mapping[str, Family] = {f.name: f for f in (ALGEBRA, TRANSFORMER, DIFFERENCE, JOIN, CONVOLUTION, MOVEMENT)}

SHIPPED: Mapping[str, int] = {**dict.fromkeys(FAMILIES, 3), MOVEMENT.name: 2}
"""The families of the shipped library, with the most operators of a side of their rules. A movement and the operator
that it passes are two; with three, most new rules are about how slices happen to lie, or are known from other families,
and the search takes eight times as long (83 CPU seconds, not 11, for 60 rules more)."""
