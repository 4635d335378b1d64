"""Equations of other rule sets at concrete shapes: as terms of this library, with the values of their constants.

At a: (2, 3) and b: (2, 5), split_0(1, relu(concat(1, a, b))) becomes output 0 of Split(Relu(Concat(a, b))), along axis
-1 with sizes (3, 5). TASO's operators mean here:

- conv2d: as many groups as the image has channels for each channel that the filters read; "same" pads as SAME_UPPER
  does;
- split: the inverse of the concatenation along the axis that its operand carries (`Concrete.joints`), or else halves;
- poolavg: the padding counts, as in the convolution with `Cpool`;
- element-wise operators: nothing is broadcast.

Invariant: `joints` records the sizes of concatenations as far as operators pass them on, so that a split knows where to
cut; shapes at which an operator has no meaning raise `TypeInferenceError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from rlflow.errors import TypeInferenceError
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.ops.domain import Array, Domain
from rlflow.rules import pattern
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.synthesis.taso.equations import Call, Formula, Name, names

_SAME = 0
_RELU = 2
Joints = Mapping[int, tuple[int, int]]
"""Axes, each with the two sizes that were concatenated along it."""


@dataclass(frozen=True)
class Constant:
    """A tensor whose value the notation fixes: `kind` is Imatmul, Iconv, Cpool or Iewmul."""

    kind: str
    type: TensorType

    def value(self, domain: Domain) -> Array:
        """Return the constant in this domain: an identity, or 1 over the taps of a pool everywhere."""
        shape = tuple(d for d in self.type.shape or () if isinstance(d, int))
        if self.kind in ("Cpool", "Iewmul"):
            taps = shape[2] * shape[3] if self.kind == "Cpool" else 1
            share = domain.divide(domain.constant(1.0), domain.constant(float(taps)))
            return domain.structural(lambda v: np.broadcast_to(v, shape), share)
        ones = _identity(shape)
        chosen: Callable[..., np.ndarray] = lambda one, zero: np.asarray(np.where(ones, one, zero))  # noqa: E731
        return domain.structural(chosen, domain.constant(1.0), domain.constant(0.0))


def _identity(shape: tuple[int, ...]) -> np.ndarray:
    """Return where an identity is 1: (k, k) for a product, (c, c, p, q) with the window's middle for a convolution."""
    ones = np.zeros(shape, dtype=bool)
    middle = tuple((size - 1) // 2 for size in shape[2:])
    for i in range(shape[0]):
        ones[(i, i, *middle)] = True
    return ones


@dataclass(frozen=True)
class Concrete:
    """A formula at some shapes; `groups` are those of all its convolutions."""

    term: Term
    type: TensorType
    joints: Joints = field(default_factory=dict)
    groups: frozenset[int] = frozenset()
    constants: Mapping[str, Constant] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the formula's value."""
        return tuple(d for d in self.type.shape or () if isinstance(d, int))


def concrete(formula: Formula, types: Mapping[str, TensorType], width: int, beside: tuple[int, ...] = ()) -> Concrete:
    """Instantiate a formula over variables of these types; `TypeInferenceError` if it is not well typed.

    A constant is as wide as its neighbour, an operand of shape `beside`, requires; without one it has this `width`.
    """
    if isinstance(formula, Name):
        return Concrete(Variable(formula.name), types[formula.name])
    if not formula.operands:
        return _constant(formula, width, beside)

    # An operand with variables comes first, as it tells how wide the constants beside it are.
    first = next((i for i, operand in enumerate(formula.operands) if names(operand)), 0)
    one = concrete(formula.operands[first], types, width, beside)
    operands = [
        one if i == first else concrete(operand, types, _asked_width(formula, i, one.shape, width), one.shape)
        for i, operand in enumerate(formula.operands)
    ]
    return _MEANING[formula.name](formula.numbers, operands)


def _asked_width(call: Call, place: int, other: tuple[int, ...], width: int) -> int:
    """Return the width of a constant in this place of an operator whose other operand has this shape."""
    axes = {"matmul": place, "conv2d": 1, "concat": 1 - sum(call.numbers)}
    axis = axes.get(call.name, 0)
    return other[axis] if 0 <= axis < len(other) else width


def _constant(formula: Call, width: int, beside: tuple[int, ...]) -> Concrete:
    shapes = {
        "Imatmul": (width, width),
        "Iconv": (width, width, *formula.numbers),
        "Cpool": (width, 1, *formula.numbers),
        "Iewmul": beside,
    }
    constant = Constant(formula.name, TensorType("float32", shapes[formula.name]))
    name = f"{formula.name}{list(shapes[formula.name])}"
    return Concrete(Variable(name), constant.type, constants={name: constant})


def _applied(op: str, attributes: Mapping[str, Any], operands: Sequence[Concrete], joints: Joints) -> Concrete:
    """Apply an operator of this library; `joints` are those of the result."""
    written = {**registry.OPERATORS[op].defaults, **attributes}
    frozen = tuple(sorted((name, pattern.freeze(value)) for name, value in written.items()))
    term = Apply(op, frozen, tuple(o.term for o in operands))
    (tensor_type, *_) = registry.infer(op, written, [o.type for o in operands])
    groups = frozenset[int]().union(*(o.groups for o in operands))
    constants = {name: constant for o in operands for name, constant in o.constants.items()}
    return Concrete(term, tensor_type, joints, groups, constants)


def _of_rank(rank: int, operands: Sequence[Concrete], name: str) -> None:
    if any(len(o.shape) != rank for o in operands):
        raise TypeInferenceError(
            f"{name} needs operands of rank {rank}, not {', '.join(str(o.type) for o in operands)}"
        )


def _elementwise(op: str) -> _Meaning:
    """Return the meaning of an element-wise operator, whose operands have one shape in TASO: nothing is broadcast."""

    def meaning(numbers: tuple[int, ...], operands: list[Concrete]) -> Concrete:
        a, b = operands
        if a.type != b.type:
            raise TypeInferenceError(f"{op} needs operands of one type, not {a.type} and {b.type}")
        joints = {axis: sizes for axis, sizes in a.joints.items() if b.joints.get(axis) == sizes}
        return _applied(op, {}, operands, joints)

    return meaning


def _scaled(numbers: tuple[int, ...], operands: list[Concrete]) -> Concrete:
    _of_rank(0, operands[1:], "smul")
    return _applied("Mul", {}, operands, operands[0].joints)


def _relu(numbers: tuple[int, ...], operands: list[Concrete]) -> Concrete:
    return _applied("Relu", {}, operands, operands[0].joints)


def _matmul(numbers: tuple[int, ...], operands: list[Concrete]) -> Concrete:
    _of_rank(2, operands, "matmul")
    joints = {axis: o.joints[axis] for axis, o in enumerate(operands) if axis in o.joints}
    return _applied("MatMul", {}, operands, joints)


def _transposed(numbers: tuple[int, ...], operands: list[Concrete]) -> Concrete:
    _of_rank(2, operands, "transpose")
    joints = {1 - axis: sizes for axis, sizes in operands[0].joints.items()}
    return _applied("Transpose", {"perm": (1, 0)}, operands, joints)


def _concatenated(numbers: tuple[int, ...], operands: list[Concrete]) -> Concrete:
    axis, (a, b) = numbers[0], operands
    if not axis < len(a.shape) == len(b.shape):
        raise TypeInferenceError(f"{a.type} and {b.type} cannot be concatenated along axis {axis}")
    others = {i: sizes for i, sizes in a.joints.items() if i != axis and b.joints.get(i) == sizes}
    sizes = {axis: (a.shape[axis], b.shape[axis])}
    return _applied("Concat", {"axis": axis - len(a.shape)}, operands, others | sizes)


def _part(output: int) -> _Meaning:
    """Return the meaning of one output of a split."""

    def meaning(numbers: tuple[int, ...], operands: list[Concrete]) -> Concrete:
        axis, whole = numbers[0], operands[0]
        if not axis < len(whole.shape):
            raise TypeInferenceError(f"{whole.type} has no axis {axis} to split")
        half, rest = divmod(whole.shape[axis], 2)
        if axis not in whole.joints and rest:
            raise TypeInferenceError(f"{whole.type} has no halves along axis {axis}")
        # A split undoes the concatenation that its operand carries along the axis; without one it halves.
        sizes = whole.joints.get(axis, (half, half))
        joints = {i: joint for i, joint in whole.joints.items() if i != axis}
        split = _applied("Split", {"axis": axis - len(whole.shape), "split": sizes}, operands, joints)
        assert isinstance(split.term, Apply)
        shape = (*whole.shape[:axis], sizes[output], *whole.shape[axis + 1 :])
        return replace(split, term=replace(split.term, output=output), type=TensorType("float32", shape))

    return meaning


def _convolution(numbers: tuple[int, ...], operands: list[Concrete]) -> Concrete:
    *strides, padding, activation = numbers
    image, filters = operands
    _of_rank(4, operands, "conv2d")
    group, rest = divmod(image.shape[1], filters.shape[1])
    if rest or filters.shape[0] % max(group, 1):
        raise TypeInferenceError(f"filters {filters.type} do not fit the channels of image {image.type}")

    window = {
        "strides": tuple(strides),
        "pads": _pads(image.shape[2:], filters.shape[2:], strides, padding),
        "dilations": (1, 1),
        "group": group,
    }

    # Images joined along the batch give results joined there; filters joined along outputs give joined channels.
    joints = {axis: o.joints[0] for axis, o in enumerate(operands) if 0 in o.joints}
    result = _applied("Conv", window, operands, joints)
    result = replace(result, groups=result.groups | {group})
    return _relu((), [result]) if activation == _RELU else result


def _pool(op: str, attributes: Mapping[str, Any]) -> _Meaning:
    def meaning(numbers: tuple[int, ...], operands: list[Concrete]) -> Concrete:
        height, width, *strides, padding = numbers
        _of_rank(4, operands, op)
        pads = _pads(operands[0].shape[2:], (height, width), strides, padding)
        window = {"kernel_shape": (height, width), "strides": tuple(strides), "pads": pads, **attributes}
        return _applied(op, window, operands, {a: s for a, s in operands[0].joints.items() if a < 2})

    return meaning


def _enlarged(numbers: tuple[int, ...], operands: list[Concrete]) -> Concrete:
    """Put zeros around the filters, so that the middle of their window, for "same" padding, stays in the middle."""
    _of_rank(4, operands, "enlarge")
    sizes = operands[0].shape[2:]
    begins = [(wanted - 1) // 2 - (size - 1) // 2 for wanted, size in zip(numbers, sizes, strict=True)]
    ends = [wanted - size - begin for wanted, size, begin in zip(numbers, sizes, begins, strict=True)]
    if min(*begins, *ends) < 0:
        raise TypeInferenceError(f"filters {operands[0].type} are larger than {numbers}")
    pads = {"pads": (0, 0, *begins, 0, 0, *ends)}
    return _applied("Pad", pads, operands, {a: s for a, s in operands[0].joints.items() if a < 2})


def _pads(image: Sequence[int], kernel: Sequence[int], strides: Sequence[int], padding: int) -> tuple[int, ...]:
    """Return the pads of a window, all begins and then all ends: for "same" padding those of ONNX's SAME_UPPER."""
    if padding != _SAME:
        return (0,) * 4
    totals = [
        max(0, (-(-size // step) - 1) * step + window - size)
        for size, window, step in zip(image, kernel, strides, strict=True)
    ]
    return (*(t // 2 for t in totals), *(t - t // 2 for t in totals))


_Meaning = Callable[[tuple[int, ...], list[Concrete]], Concrete]
_MEANING: Mapping[str, _Meaning] = {
    "ewadd": _elementwise("Add"),
    "ewmul": _elementwise("Mul"),
    "smul": _scaled,
    "relu": _relu,
    "matmul": _matmul,
    "transpose": _transposed,
    "concat": _concatenated,
    "split_0": _part(0),
    "split_1": _part(1),
    "conv2d": _convolution,
    "poolavg": _pool("AveragePool", {"count_include_pad": 1}),
    "poolmax": _pool("MaxPool", {"dilations": (1, 1)}),
    "enlarge": _enlarged,
}
