"""Transposes, reshapes, splits and pads that pass other operators, meet, or cancel.

Transposes sink towards the outputs, where they meet others: an example is `softmax-before-transpose`. Where two
relabellings give a tensor the type that it had, it is the tensor that it was: the matcher demands equal types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from rlflow.rules.dsl import (
    CONSTANT,
    Attribute,
    Choice,
    Integers,
    OperatorConstructor,
    Partition,
    Rewrite,
    Shape,
    Tensor,
    Value,
    attribute,
    false_control,
    ints,
    join,
    rule,
    rules,
    tensor,
    total,
)
from rlflow.rules.dsl.operators import (
    Add,
    AveragePool,
    Clip,
    Div,
    Erf,
    Exp,
    Flatten,
    Gelu,
    Identity,
    LayerNormalization,
    Log,
    Mul,
    Neg,
    Pad,
    Reciprocal,
    ReduceMean,
    ReduceSum,
    Relu,
    Reshape,
    Sigmoid,
    Slice,
    Softmax,
    Split,
    Sqrt,
    Squeeze,
    Sub,
    Tanh,
    Transpose,
    Unsqueeze,
)
from rlflow.rules.dsl.vocabulary import (
    LAST,
    Approximation,
    Axis,
    Bounds,
    Constant,
    Factor,
    Image,
    NewShape,
    Permutation,
    Row,
    Rows,
    Square,
    Strides,
)
from rlflow.rules.expression import TO_THE_END

FAMILY = "movement"

_X = tensor("x")
_WIDER = join(_X.shape, [1])
Narrowing = Annotated[Attribute, Choice([-1], [-2], [-3])]
Widening = Annotated[Attribute, Choice([-1], [-2], [0], [1])]
Flattening = Annotated[Attribute, Choice(0, 1, 2, -1)]


@rule("drop-identity")
def drop_identity(x: Tensor) -> Rewrite:
    """The operator that does nothing."""
    return Rewrite(Identity(x), x)


@rule("flatten-to-reshape")
def flatten_to_reshape(x: Tensor, w: Flattening) -> Rewrite:
    """A Flatten behind the first axis, as most models have it, is a Reshape."""
    return Rewrite(Flatten(x, axis=w), Reshape(x, shape=ints(0, x.elements_from(1))), where=[w == 1, x.rank > 1])


@rule("reshape-of-unsqueeze")
def reshape_of_unsqueeze(x: Tensor, t: NewShape, u: Widening) -> Rewrite:
    """A Reshape of an Unsqueeze is a Reshape, unless it copies a dimension."""
    return Rewrite(Reshape(Unsqueeze(x, axes=u), shape=t), Reshape(x, shape=t), where=[~t.contains(0)])


@rule("reshape-of-squeeze")
def reshape_of_squeeze(x: Tensor, t: NewShape, v: Narrowing) -> Rewrite:
    """A Reshape of a Squeeze is a Reshape, unless it copies a dimension."""
    return Rewrite(Reshape(Squeeze(x, axes=v), shape=t), Reshape(x, shape=t), where=[~t.contains(0)])


@rule("reshape-of-flatten")
def reshape_of_flatten(x: Tensor, t: NewShape, w: Flattening) -> Rewrite:
    """A Reshape of a Flatten is a Reshape, unless it copies a dimension."""
    return Rewrite(Reshape(Flatten(x, axis=w), shape=t), Reshape(x, shape=t), where=[~t.contains(0)])


@rule("cancel-squeeze-of-unsqueeze")
def cancel_squeeze_of_unsqueeze(x: Tensor, v: Narrowing, u: Widening) -> Rewrite:
    """An axis of length one comes by Unsqueeze and goes by Squeeze."""
    return Rewrite(Squeeze(Unsqueeze(x, axes=u), axes=v), x)


@rule("cancel-unsqueeze-of-squeeze")
def cancel_unsqueeze_of_squeeze(x: Tensor, v: Narrowing, u: Widening) -> Rewrite:
    """An axis of length one goes by Squeeze and comes by Unsqueeze."""
    return Rewrite(Unsqueeze(Squeeze(x, axes=v), axes=u), x)


@rule("cancel-squeeze-of-reshape")
def cancel_squeeze_of_reshape(
    x: Tensor, t: Annotated[Attribute, Choice(_WIDER, join([1], _X.shape))], v: Narrowing
) -> Rewrite:
    """An axis of length one comes by Reshape and goes by Squeeze."""
    return Rewrite(Squeeze(Reshape(x, shape=t), axes=v), x)


@rule("cancel-unsqueeze-of-reshape")
def cancel_unsqueeze_of_reshape(
    x: Tensor, t: Annotated[Attribute, Choice([-1], [_X.dim(0), _X.dim(-1)])], u: Widening
) -> Rewrite:
    """An axis of length one goes by Reshape and comes by Unsqueeze."""
    return Rewrite(Unsqueeze(Reshape(x, shape=t), axes=u), x, where=[x.shape.contains(1), x.rank == t.length + 1])


@rule("cancel-flatten-of-reshape")
def cancel_flatten_of_reshape(x: Tensor, t: Annotated[Attribute, Choice(_WIDER, _X.shape)], w: Flattening) -> Rewrite:
    """A Flatten gives a matrix the shape that it had before a Reshape."""
    return Rewrite(Flatten(Reshape(x, shape=t), axis=w), x, where=[x.rank == 2])


@rules(
    {
        "relu-before-transpose": Relu,
        "neg-before-transpose": Neg,
        "reciprocal-before-transpose": Reciprocal,
        "exp-before-transpose": Exp,
        "erf-before-transpose": Erf,
        "tanh-before-transpose": Tanh,
        "sqrt-before-transpose": Sqrt,
        "log-before-transpose": Log,
        "sigmoid-before-transpose": Sigmoid,
    }
)
def function_before_transpose(f: OperatorConstructor, x: Tensor, p: Permutation) -> Rewrite:
    """A function of the elements of a transpose is the transpose of the function."""
    return Rewrite(f(Transpose(x, perm=p)), Transpose(f(x), perm=p))


@rule("clip-before-transpose")
def clip_before_transpose(x: Tensor, p: Permutation, bounds: Bounds) -> Rewrite:
    """A Clip of a transpose is the transpose of the Clip."""
    return Rewrite(Clip(Transpose(x, perm=p), **bounds), Transpose(Clip(x, **bounds), perm=p))


@rule("gelu-before-transpose")
def gelu_before_transpose(x: Tensor, p: Permutation, a: Approximation) -> Rewrite:
    """A Gelu of a transpose is the transpose of the Gelu."""
    return Rewrite(Gelu(Transpose(x, perm=p), approximate=a), Transpose(Gelu(x, approximate=a), perm=p))


@rules(
    {
        "add-before-transposes": Add,
        "mul-before-transposes": Mul,
        "sub-before-transposes": Sub,
        "div-before-transposes": Div,
    }
)
def two_before_transposes(op: OperatorConstructor, x: Tensor, z: Tensor, p: Permutation) -> Rewrite:
    """A function of two tensors that are transposed alike is the transpose of the function."""
    return Rewrite(op(Transpose(x, perm=p), Transpose(z, perm=p)), Transpose(op(x, z), perm=p))


Binary = Callable[[Tensor, Tensor], Tensor]


def _swapped(op: OperatorConstructor) -> Binary:
    """The operator with its operands exchanged: the constant comes from the right."""
    return lambda x, z: op(z, x)


@rules(
    {
        "add-of-constant-before-transpose": (Add, False),
        "add-of-scalar-before-transpose": (Add, True),
        "mul-of-constant-before-transpose": (Mul, False),
        "sub-of-constant-before-transpose": (Sub, False),
        "sub-of-scalar-before-transpose": (Sub, True),
        "sub-of-constant-before-transpose-from-right": (_swapped(Sub), False),
        "sub-of-scalar-before-transpose-from-right": (_swapped(Sub), True),
        "div-of-constant-before-transpose": (Div, False),
        "div-of-scalar-before-transpose": (Div, True),
        "div-of-constant-before-transpose-from-right": (_swapped(Div), False),
        "div-of-scalar-before-transpose-from-right": (_swapped(Div), True),
    }
)
def constant_before_transpose(case: tuple[Binary, bool], x: Tensor, z: Constant, p: Permutation) -> Rewrite:
    """A constant beside a transpose is turned the other way, or is the same everywhere."""
    op, is_scalar = case
    moved = z if is_scalar else Transpose(z, perm=p.inverse())
    condition = z.elements == 1 if is_scalar else z.rank == p.length
    return Rewrite(op(Transpose(x, perm=p), z), Transpose(op(x, moved), perm=p), where=[condition])


@false_control("constant-is-not-turned", of="add-of-constant-before-transpose")
def constant_is_not_turned(x: Square, z: Square) -> Rewrite:
    """False: the constant would have to be turned, though the matrix is square."""
    return Rewrite(Add(Transpose(x, perm=[1, 0]), z), Transpose(Add(x, z), perm=[1, 0]))


@false_control("row-is-added-to-columns", of="add-of-constant-before-transpose")
def row_is_added_to_columns(x: Square, g: Row) -> Rewrite:
    """False: a row that is transposed is a column."""
    return Rewrite(Add(Transpose(x, perm=[1, 0]), g), Transpose(Add(x, g), perm=[1, 0]))


CHANNELS_LAST = [0, 2, 3, 1]
CHANNELS_FIRST = [0, 3, 1, 2]
"""Transposes that take the channels of an image to the end, and back.

What is added to each channel, or scales it, is a constant of one shape before and of another one behind them.
"""

FourAxes = Annotated[Tensor, Shape("n a b d")]
PerLast = Annotated[Tensor, Shape("c"), CONSTANT]
PerFirst = Annotated[Tensor, Shape("c 1 1"), CONSTANT]


_TO_LAST = {"perm": CHANNELS_LAST, "z": PerLast, "shape": [-1, 1, 1]}
_TO_FIRST = {"perm": CHANNELS_FIRST, "z": PerFirst, "shape": [-1]}


@rules(
    {
        "add-before-channels-last": {"op": Add, **_TO_LAST},
        "add-before-channels-first": {"op": Add, **_TO_FIRST},
        "mul-before-channels-last": {"op": Mul, **_TO_LAST},
        "mul-before-channels-first": {"op": Mul, **_TO_FIRST},
        "sub-before-channels-last": {"op": Sub, **_TO_LAST},
        "sub-before-channels-first": {"op": Sub, **_TO_FIRST},
        "sub-before-channels-last-from-right": {"op": _swapped(Sub), **_TO_LAST},
        "sub-before-channels-first-from-right": {"op": _swapped(Sub), **_TO_FIRST},
        "div-before-channels-last": {"op": Div, **_TO_LAST},
        "div-before-channels-first": {"op": Div, **_TO_FIRST},
        "div-before-channels-last-from-right": {"op": _swapped(Div), **_TO_LAST},
        "div-before-channels-first-from-right": {"op": _swapped(Div), **_TO_FIRST},
    }
)
def constant_of_channels(op: Binary, x: FourAxes, z: Tensor, perm: list[int], shape: list[int]) -> Rewrite:
    """Channels go to the end, or come back to the front, and meet a constant there: each channel has its own number."""
    return Rewrite(op(Transpose(x, perm=perm), z), Transpose(op(x, Reshape(z, shape=shape)), perm=perm))


def _before(p: Value, axis: Value) -> Value:
    """The axis that a transpose brings to this place, counted from the end."""
    return p[axis] - p.length


@rule("softmax-before-transpose")
def softmax_before_transpose(x: Tensor, p: Permutation, a: Axis) -> Rewrite:
    """A softmax looks along one axis, which a transpose takes elsewhere."""
    return Rewrite(Softmax(Transpose(x, perm=p), axis=a), Transpose(Softmax(x, axis=_before(p, a)), perm=p))


@false_control("softmax-keeps-its-axis", of="softmax-before-transpose")
def softmax_keeps_its_axis(x: Square, p: Permutation) -> Rewrite:
    """False: the axis of a softmax goes along with the transpose."""
    return Rewrite(Softmax(Transpose(x, perm=p)), Transpose(Softmax(x), perm=p))


OneAxis = Annotated[Attribute, Choice([-1], [-2], [-3])]
TwoAxes = Annotated[Attribute, Choice([-2, -1], [-3, -2], [-3, -1])]


@rules(
    {
        "reducesum-of-1-before-transpose": {"op": ReduceSum, "count": 1, "r": OneAxis},
        "reducesum-of-2-before-transpose": {"op": ReduceSum, "count": 2, "r": TwoAxes},
        "reducemean-of-1-before-transpose": {"op": ReduceMean, "count": 1, "r": OneAxis},
        "reducemean-of-2-before-transpose": {"op": ReduceMean, "count": 2, "r": TwoAxes},
    }
)
def sum_before_transpose(op: OperatorConstructor, count: int, x: Tensor, p: Permutation, r: Attribute) -> Rewrite:
    """The sum or the mean along one axis or two, which a transpose takes elsewhere."""
    axes = ints(*(_before(p, r[i]) for i in range(count)))
    return Rewrite(
        op(Transpose(x, perm=p), axes=r, keepdims=1),
        Transpose(op(x, axes=axes, keepdims=1), perm=p),
        where=[r.length == count],
    )


@rules({"layer-norm-before-transpose": False, "layer-norm-with-shift-before-transpose": True})
def layer_norm_before_transpose(shift: bool, x: Rows, g: Row, c: Row, p: Permutation, e: Factor) -> Rewrite:
    """A normalisation of rows, where the last axis stays the last."""
    weights = [g, c] if shift else [g]
    return Rewrite(
        LayerNormalization(Transpose(x, perm=p), *weights, epsilon=e),
        Transpose(LayerNormalization(x, *weights, epsilon=e), perm=p),
        where=[p[-1] == p.length - 1],
    )


@false_control("norm-of-another-axis", of="layer-norm-before-transpose")
def norm_of_another_axis(x: Square, g: Row) -> Rewrite:
    """False: the last axis does not stay the last."""
    return Rewrite(LayerNormalization(Transpose(x, perm=[1, 0]), g), Transpose(LayerNormalization(x, g), perm=[1, 0]))


@rule("transpose-of-ones-to-reshape")
def transpose_of_ones_to_reshape(x: Tensor, p: Permutation) -> Rewrite:
    """Axes of length one move past others without moving an element."""
    return Rewrite(
        Transpose(x, perm=p),
        Reshape(x, shape=x.shape.permuted(p)),
        where=[x.shape.is_static(), x.shape.keeps_order(p), ~p.is_identity()],
    )


@false_control("transpose-is-a-reshape", of="transpose-of-ones-to-reshape")
def transpose_is_a_reshape(x: Annotated[Tensor, Shape("m n")]) -> Rewrite:
    """False: only the types are alike."""
    return Rewrite(Transpose(x, perm=[1, 0]), Reshape(x, shape=ints(x.dim(1), x.dim(0))))


_HALVES = {"count": 2, "s": Annotated[Attribute, Partition("x", axis="k", parts=2)]}
_THIRDS = {"count": 3, "s": Annotated[Attribute, Partition("x", axis="k", parts=3)]}


@rules(
    {
        "part-0-of-2-to-slice": {"part": 0, **_HALVES},
        "part-1-of-2-to-slice": {"part": 1, **_HALVES},
        "part-0-of-3-to-slice": {"part": 0, **_THIRDS},
        "part-1-of-3-to-slice": {"part": 1, **_THIRDS},
        "part-2-of-3-to-slice": {"part": 2, **_THIRDS},
    }
)
def part_to_slice(part: int, count: int, x: Tensor, k: Axis, s: Attribute) -> Rewrite:
    """A part of a split is a slice, which knows how to move: it starts at the sum of the sizes before it."""
    before = [s[j] for j in range(part)]
    start, end = total(0, *before), total(0, *before, s[part])
    return Rewrite(
        Split(x, axis=k, split=s)[part],
        Slice(x, axes=ints(k), starts=ints(start), ends=ints(end), steps=[1]),
        where=[s.length == count],
    )


@false_control("parts-of-a-split-are-equal", of="part-1-of-2-to-slice")
def parts_of_a_split_are_equal(x: Annotated[Tensor, Shape("m 4")]) -> Rewrite:
    """False: the second part is not the first."""
    return Rewrite(Split(x, axis=LAST, split=[2, 2])[1], Slice(x, axes=[LAST], starts=[0], ends=[2], steps=[1]))


_LENGTH = _X.dim(attribute("a", "ints")[0])


@rule("slices-to-split")
def slices_to_split(
    x: Tensor,
    a: OneAxis,
    b: Annotated[Attribute, Choice([1], [2])],
    e: Annotated[Attribute, Choice([_LENGTH], [TO_THE_END])],
) -> Rewrite:
    """Slices end to end as one split."""
    length, cut, end = x.dim(a[0]), b[0], e[0]
    parts = Split(x, axis=a[0], split=ints(cut, length - cut))
    return Rewrite(
        [Slice(x, axes=a, starts=[0], ends=b, steps=[1]), Slice(x, axes=a, starts=b, ends=e, steps=[1])],
        [parts[0], parts[1]],
        where=[a.length == 1, cut >= 0, cut <= length, length <= end],
    )


@rule("drop-empty-pad")
def drop_empty_pad(
    x: Image,
    p: Annotated[Attribute, Choice([0] * 8, [0] * 7 + [1])],
    v: Annotated[Attribute, Choice(0.0, 1.0)],
) -> Rewrite:
    """A pad of no width, which the types tell, does nothing."""
    return Rewrite(Pad(x, pads=p, constant_value=v), x)


@rule("compose-pads")
def compose_pads(
    x: Image,
    p: Annotated[Attribute, Integers(0, 1, count=8)],
    q: Annotated[Attribute, Integers(0, 1, count=8)],
    v: Annotated[Attribute, Choice(0.0, 1.0)],
) -> Rewrite:
    """Two pads by the same number are one."""
    both = ints(*(p[i] + q[i] for i in range(8)))
    return Rewrite(Pad(Pad(x, pads=p, constant_value=v), pads=q, constant_value=v), Pad(x, pads=both, constant_value=v))


@rule("pad-into-average")
def pad_into_average(
    x: Image,
    w: Annotated[Attribute, Integers(2, 3, count=2)],
    s: Strides,
    p: Annotated[Attribute, Choice([0] * 4, [1, 0, 0, 0])],
    q: Annotated[Attribute, Choice([0, 0, 1, 1, 0, 0, 1, 1], [0, 0, 0, 1, 0, 0, 1, 0])],
) -> Rewrite:
    """Zeros around an image that a mean counts are pads of its window."""
    pool = {"kernel_shape": w, "strides": s, "count_include_pad": 1}
    around = ints(*(p[i] + q[j] for i, j in enumerate((2, 3, 6, 7))))
    return Rewrite(
        AveragePool(Pad(x, pads=q), **pool, pads=p),
        AveragePool(x, **pool, pads=around),
        where=[*(q[i] == 0 for i in (0, 1, 4, 5)), x.dim(2) >= 1, x.dim(3) >= 1],
    )


@false_control("a-mean-counts-what-lies-around", of="pad-into-average")
def a_mean_counts_what_lies_around(x: Image) -> Rewrite:
    """False: this mean counts only what lies within the image."""
    pool = {"kernel_shape": [2, 2], "strides": [1, 1], "count_include_pad": 0}
    return Rewrite(
        AveragePool(Pad(x, pads=[0, 0, 1, 1, 0, 0, 1, 1]), **pool, pads=[0, 0, 0, 0]),
        AveragePool(x, **pool, pads=[1, 1, 1, 1]),
    )
