"""Slices where the lengths along their axis tell: of Gemm, of joins, of heads and of other slices.

An example is `slice-before-shorter-slice`: of two slices from the front, the one that ends first counts.
"""

from __future__ import annotations

from typing import Annotated

from rlflow.rules.dsl import (
    Attribute,
    Attributes,
    Choice,
    Condition,
    Operand,
    Rewrite,
    Shape,
    Tensor,
    Together,
    Uniform,
    Value,
    attribute,
    false_control,
    ints,
    join,
    law,
    rule,
    rules,
    tensor,
)
from rlflow.rules.dsl.operators import Concat, Gather, Gemm, Reshape, Slice, Squeeze
from rlflow.rules.dsl.vocabulary import (
    LAST,
    ROWS,
    AnySlice,
    Axis,
    Extent,
    Literal,
)
from rlflow.rules.expression import TO_THE_END

FAMILY = "reading"

GemmFactors = Annotated[
    Attributes,
    Together(alpha=("alpha", Uniform()), beta=("beta", Uniform()), transB=("turned", Choice(0, 1))),
]
Left = Annotated[Tensor, Shape("m k")]
Right = Annotated[Tensor, Shape("l n")]
Addend = Annotated[Tensor, Shape("o")]


_BIAS = ({"bias": False}, {"bias": True})


@law("slice-before-gemm", "slice-before-gemm-with-bias", over=_BIAS)
def slice_before_gemm(bias: bool, x: Left, w: Right, c: Addend, extent: Extent, factors: GemmFactors) -> Rewrite:
    """Rows of a Gemm are made of rows of the left matrix, and of the whole bias."""
    others, rows = [w, c] if bias else [w], Slice(x, axes=[ROWS], **extent)
    return Rewrite(Slice(Gemm(x, *others, **factors), axes=[ROWS], **extent), Gemm(rows, *others, **factors))


@law("slice-before-gemm-of-columns", "slice-before-gemm-of-columns-with-bias", over=_BIAS)
def slice_before_gemm_of_columns(
    bias: bool, x: Left, w: Right, c: Addend, extent: Extent, factors: GemmFactors
) -> Rewrite:
    """Columns of a Gemm are made of columns of the right matrix, however it is stored, and of the bias."""
    columns = Slice(w, axes=ints(LAST - factors["transB"]), **extent)
    biases, read = ([c], [Slice(c, axes=[LAST], **extent)]) if bias else ([], [])
    return Rewrite(
        Slice(Gemm(x, w, *biases, **factors), axes=[LAST], **extent),
        Gemm(x, columns, *read, **factors),
        where=[c.dim(0) != 1] if bias else [],
    )


def along(part: Attributes) -> Value:
    """The axis of a slice that has but one."""
    return part["axes"][0]


def is_single(part: Attributes) -> Condition:
    """The slice is one along one axis."""
    return part["axes"].length == 1


def _is_forward(starts: Value, ends: Value, steps: Value) -> list[Condition]:
    """A slice from the front, element by element."""
    return [starts[0] >= 0, ends[0] >= 0, steps == [1]]


_AXIS = attribute("axis", "ints")[0]
_LENGTH = tensor("x").dim(_AXIS)
SameAxis = Annotated[Attribute, Choice(_AXIS)]


@rules({"slice-before-first-of-2-joined": 2, "slice-before-first-of-3-joined": 3})
def slice_before_first_joined(count: int, x: Tensor, y: Tensor, z: Tensor, part: AnySlice, j: SameAxis) -> Rewrite:
    """A slice of a join that lies within the first part."""
    return Rewrite(
        Slice(Concat(*[x, y, z][:count], axis=j), **part),
        Slice(x, **part),
        where=[
            is_single(part),
            along(part) == j,
            *_is_forward(part["starts"], part["ends"], part["steps"]),
            part["ends"][0] <= x.dim(along(part)),
        ],
    )


BehindFirst = Annotated[
    Attributes,
    Together(
        axes=("axis", Choice([-1], [-2], [-3], [-4])),
        starts=("b", Choice([_LENGTH], [_LENGTH + 1])),
        ends=("e", Choice([_LENGTH + 2], [TO_THE_END])),
        steps=("t", Choice([1], [1], [2], [-1])),
    ),
]


@rule("slice-before-second-of-2-joined")
def slice_before_second_of_2_joined(x: Tensor, y: Tensor, part: BehindFirst, j: SameAxis) -> Rewrite:
    """A slice of a join of two that lies within the second part."""
    length, start, end = x.dim(along(part)), part["starts"][0], part["ends"][0]
    moved = {**part, "starts": ints(start - length), "ends": ints(end - length)}
    return Rewrite(
        Slice(Concat(x, y, axis=j), **part),
        Slice(y, **moved),
        where=[
            is_single(part),
            along(part) == j,
            *_is_forward(part["starts"], part["ends"], part["steps"]),
            length <= start,
            length <= end,
        ],
    )


_X = tensor("x")
_FIRST, _SECOND = _X.dim(0), _X.dim(1)
_WIDTH = _X.dim(2) * _X.dim(3)
_HEADS = ([2, -1], [-1, 3])
Joined = Annotated[
    Attribute,
    Choice([0, 0, LAST], [0, _SECOND, LAST], [_FIRST, _SECOND, _WIDTH], [LAST, _SECOND, _WIDTH]),
]
Parted = Annotated[
    Attribute,
    Choice(*([a, b, *heads] for a in (0, _FIRST) for b in (0, _SECOND) for heads in _HEADS)),
]


def _keeps_first_two(shape: Value, x: Tensor) -> list[Condition]:
    return [shape[0].is_in([0, LAST, x.dim(0)]), shape[1].is_in([0, x.dim(1)])]


@rule("slice-before-heads-joined")
def slice_before_heads_joined(x: Annotated[Tensor, Shape("b t h d")], extent: Extent, r: Joined) -> Rewrite:
    """The last two axes joined (attention's heads), where an axis before them is read."""
    return Rewrite(
        Slice(Reshape(x, shape=r), axes=[ROWS], **extent),
        Reshape(Slice(x, axes=[-3], **extent), shape=ints(0, 0, x.dim(2) * x.dim(3))),
        where=[r.length == 3, *_keeps_first_two(r, x), r[2].is_in([LAST, x.dim(2) * x.dim(3)])],
    )


@rule("slice-before-heads-parted")
def slice_before_heads_parted(x: Annotated[Tensor, Shape("b t c")], extent: Extent, r: Parted) -> Rewrite:
    """The last axis taken apart, where an axis before it is read."""
    return Rewrite(
        Slice(Reshape(x, shape=r), axes=[-3], **extent),
        Reshape(Slice(x, axes=[ROWS], **extent), shape=ints(0, 0, r[2], r[3])),
        where=[r.length == 4, *_keeps_first_two(r, x), r[2] != 0],
    )


InnerExtent = Annotated[
    Attributes,
    Together(
        starts=("c", Choice([0], [0], [1], [-1], [-2])),
        ends=("f", Choice([1], [2], [3], [-1], [TO_THE_END])),
        steps=("u", Choice([1], [1], [2], [-1])),
    ),
]
OtherAxis = Annotated[Attribute, Choice([-1], [-2], [-3])]
FromFirst = Annotated[
    Attributes, Together(starts=("b", Choice([0])), ends=("e", Choice([1], [2])), steps=("t", Choice([1])))
]


def _both_forward(part: AnySlice, inner: InnerExtent) -> list[Condition]:
    return [
        *_is_forward(part["starts"], part["ends"], part["steps"]),
        *_is_forward(inner["starts"], inner["ends"], inner["steps"]),
    ]


def _once(x: Operand, part: AnySlice, start: Value, end: Value) -> Tensor:
    return Slice(x, axes=part["axes"], starts=ints(start), ends=ints(end), steps=[1])


@rule("slice-before-shorter-slice")
def slice_before_shorter_slice(x: Tensor, part: AnySlice, inner: InnerExtent) -> Rewrite:
    """A slice of a slice along one axis is one slice, which ends where the outer one does."""
    start, stop = inner["starts"][0] + part["starts"][0], inner["starts"][0] + part["ends"][0]
    return Rewrite(
        Slice(Slice(x, axes=part["axes"], **inner), **part),
        _once(x, part, start, stop),
        where=[is_single(part), *_both_forward(part, inner), stop <= inner["ends"][0]],
    )


@rule("slice-before-longer-slice")
def slice_before_longer_slice(x: Tensor, part: AnySlice, inner: InnerExtent) -> Rewrite:
    """A slice of a slice along one axis is one slice, which ends where the inner one does."""
    start, stop = inner["starts"][0] + part["starts"][0], inner["starts"][0] + part["ends"][0]
    return Rewrite(
        Slice(Slice(x, axes=part["axes"], **inner), **part),
        _once(x, part, start, inner["ends"][0]),
        where=[is_single(part), *_both_forward(part, inner), inner["ends"][0] < stop],
    )


@rule("slice-before-slice-of-other-axis")
def slice_before_slice_of_other_axis(x: Tensor, part: AnySlice, k: OtherAxis, inner: InnerExtent) -> Rewrite:
    """Slices along two axes are one slice."""
    both = {name: join(part[name], inner[name]) for name in inner}
    return Rewrite(
        Slice(Slice(x, axes=k, **inner), **part),
        Slice(x, axes=join(part["axes"], k), **both),
        where=[is_single(part), k.length == 1, part["axes"] != k],
    )


@rule("drop-whole-slice")
def drop_whole_slice(x: Tensor, part: AnySlice) -> Rewrite:
    """A slice of all there is does nothing."""
    return Rewrite(
        Slice(x, **part),
        x,
        where=[is_single(part), part["starts"] == [0], part["steps"] == [1], x.dim(along(part)) <= part["ends"][0]],
    )


@false_control("a-slice-of-a-slice-starts-over", of="slice-before-shorter-slice")
def a_slice_of_a_slice_starts_over(x: Tensor, extent: FromFirst) -> Rewrite:
    """False: the outer slice counts from where the inner one begins."""
    inner = Slice(x, axes=[LAST], starts=[1], ends=[3], steps=[1])
    return Rewrite(Slice(inner, axes=[LAST], **extent), Slice(x, axes=[LAST], **extent))


@rule("gather-of-one-to-slice")
def gather_of_one_to_slice(x: Tensor, i: Literal, axis: Axis) -> Rewrite:
    """An element along an axis as a slice of one, which the other rules know how to move."""
    one = Slice(x, axes=ints(axis), starts=ints(i.index), ends=ints(i.index + 1), steps=[1])
    return Rewrite(Gather(x, i, axis=axis), Squeeze(one, axes=ints(axis)), where=[i.index != -1])


@rule("gather-of-last-to-slice")
def gather_of_last_to_slice(x: Tensor, i: Literal, axis: Axis) -> Rewrite:
    """The last element along an axis as a slice of one."""
    one = Slice(x, axes=ints(axis), starts=ints(i.index), ends=ints(TO_THE_END), steps=[1])
    return Rewrite(Gather(x, i, axis=axis), Squeeze(one, axes=ints(axis)), where=[i.index == -1])
