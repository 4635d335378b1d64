"""Operators that move elements and compute nothing: Transpose, Concat, Split, Slice, Gather, Pad; and Cast.

An operator of this family says where each element of its result comes from (`Domain.structural`), so that one
definition serves floats and the finite field alike. Shapes, axes and bounds that ONNX gives as constant inputs are
attributes here: the `OnnxForm` of an operator reads them from inputs or attributes, as its opset has them, and its
`_complete_...` function turns omitted and negative ones into what they stand for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes, AttributeValue
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.ops.algebra import Algebra
from rlflow.ops.domain import Array, Domain, FloatDomain
from rlflow.ops.onnx_form import OnnxForm, OnnxNode, Parameter, Written
from rlflow.ops.readings import carries, carries_all, converted, looks_up
from rlflow.ops.schema import Operator, Types, ints, normal_axis, same_dimension, same_dtype, shape_of, total
from rlflow.ops.sizes import sliced
from rlflow.ops.traits import Fusion, SizeArithmetic, Traits
from rlflow.ops.turns import overflows


def _infer_transpose(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    shape = shape_of(inputs[0], "Transpose")
    perm = ints(attributes["perm"])
    if sorted(perm) != list(range(len(shape))):
        raise TypeInferenceError(f"Transpose: {perm} does not permute {len(shape)} axes")
    return (TensorType(inputs[0].dtype, tuple(shape[p] for p in perm)),)


def _infer_concat(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    shapes = [shape_of(t, "Concat") for t in inputs]
    if len({len(s) for s in shapes}) != 1:
        raise TypeInferenceError(f"Concat: operands of different ranks {[len(s) for s in shapes]}")
    axis = normal_axis(attributes["axis"], len(shapes[0]), "Concat")
    result = list(shapes[0])
    for shape in shapes[1:]:
        for i, d in enumerate(shape):
            if i != axis:
                result[i] = same_dimension(result[i], d, "Concat")
    result[axis] = total([s[axis] for s in shapes])
    return (TensorType(same_dtype(inputs, "Concat"), tuple(result)),)


def _concat(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    axis = normal_axis(attributes["axis"], len(x[0].shape), "Concat")
    return (domain.structural(lambda *v: np.concatenate(v, axis=axis), *x),)


def _infer_split(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    shape = shape_of(inputs[0], "Split")
    axis = normal_axis(attributes["axis"], len(shape), "Split")
    sizes = ints(attributes["split"])
    if any(size < 0 for size in sizes):
        raise TypeInferenceError(f"Split: negative sizes {sizes}")
    if isinstance(shape[axis], int) and sum(sizes) != shape[axis]:
        raise TypeInferenceError(f"Split: sizes {sizes} do not add up to {shape[axis]}")
    return tuple(TensorType(inputs[0].dtype, (*shape[:axis], size, *shape[axis + 1 :])) for size in sizes)


def _split(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    axis = normal_axis(attributes["axis"], len(x[0].shape), "Split")
    ends = np.cumsum(ints(attributes["split"]))
    starts = [0, *ends[:-1]]
    return tuple(
        domain.structural(lambda v, a=a, b=b: v.take(range(a, b), axis=axis), x[0])
        for a, b in zip(starts, ends, strict=True)
    )


_LARGEST = 2**31 - 1


def _slices(attributes: Attributes, shape: Sequence[Dimension]) -> tuple[slice, ...]:
    """Python's slices, which are ONNX's but for two cases. Backwards from before the first element, ONNX starts at the
    first element; backwards to the largest integer, ONNX Runtime goes to the first element, which ONNX does not say.
    """
    axes, starts, ends, steps = (ints(attributes[k]) for k in ("axes", "starts", "ends", "steps"))
    if not len(axes) == len(starts) == len(ends) == len(steps):
        raise TypeInferenceError(f"Slice: {len(axes)} axes, {len(starts)} starts, {len(ends)} ends, {len(steps)} steps")
    slices = [slice(None)] * len(shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        if step == 0 or (step < 0 and end >= _LARGEST):
            raise TypeInferenceError(f"Slice: from {start} to {end} in steps of {step}")
        place = normal_axis(axis, len(shape), "Slice")
        size = shape[place]
        if step < 0 and start < 0 and isinstance(size, int):
            start = max(start + size, 0)
        slices[place] = slice(start, end, step)
    return tuple(slices)


def _infer_slice(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    shape = shape_of(inputs[0], "Slice")
    result: list[Dimension] = []
    for d, s in zip(shape, _slices(attributes, shape), strict=True):
        result.append(d if s == slice(None) else len(range(d)[s]) if isinstance(d, int) else None)
    return (TensorType(inputs[0].dtype, tuple(result)),)


def _slice(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    slices = _slices(attributes, x[0].shape)
    return (domain.structural(lambda v: v[slices], x[0]),)


def _infer_gather(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    data, indices = (shape_of(t, "Gather") for t in inputs)
    axis = normal_axis(attributes["axis"], len(data), "Gather")
    return (TensorType(inputs[0].dtype, data[:axis] + indices + data[axis + 1 :]),)


def _gather(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    axis = normal_axis(attributes["axis"], len(x[0].shape), "Gather")
    return (domain.structural(lambda v: np.take(v, x[1], axis=axis), x[0]),)


def _infer_pad(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    shape = shape_of(inputs[0], "Pad")
    pads = ints(attributes["pads"])
    if attributes["mode"] != "constant" or not inputs[0].is_float:
        raise TypeInferenceError(f"Pad: {attributes['mode']!r} of {inputs[0]} is not understood")
    if len(pads) != 2 * len(shape) or any(p < 0 for p in pads):
        raise TypeInferenceError(f"Pad: {pads} around {len(shape)} axes")
    ends = zip(shape, pads[: len(shape)], pads[len(shape) :], strict=True)
    return (TensorType(inputs[0].dtype, tuple(total([before, d, after]) for d, before, after in ends)),)


def _pad(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    pads, value = ints(attributes["pads"]), attributes["constant_value"]
    assert isinstance(value, float)
    widths = list(zip(pads[: len(pads) // 2], pads[len(pads) // 2 :], strict=True))
    fill = domain.constant(value)
    return (domain.structural(lambda v, around: np.pad(v, widths, constant_values=around), x[0], fill),)


_CASTABLE = frozenset(
    {"bool", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"}
)
"""Element types between which numpy converts as ONNX does."""


def _infer_cast(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    if not {attributes["to"], inputs[0].dtype} <= _CASTABLE:
        raise TypeInferenceError(f"Cast: from {inputs[0].dtype} to {attributes['to']!r} is not understood")
    return (TensorType(str(attributes["to"]), inputs[0].shape),)


def _cast(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    if not isinstance(domain, FloatDomain):
        raise TypeInferenceError("Cast: rounding has no exact meaning")
    return (x[0].astype(str(attributes["to"])),)


def _reversing(attributes: dict[str, AttributeValue], node: OnnxNode) -> Attributes:
    """The permutation, which reverses the axes where none is named."""
    return {"perm": tuple(reversed(range(_rank(node, "Transpose")))), **attributes}


def _rank(node: OnnxNode, operator: str) -> int:
    operand = node.type_of(0)
    if operand is None:
        raise TypeInferenceError(f"{operator}: an operand of unknown type")
    return len(shape_of(operand, operator))


def _complete_split(attributes: dict[str, AttributeValue], node: OnnxNode) -> Attributes:
    """The sizes, which are equal where none are named, the last one smaller if need be."""
    if "split" in attributes:
        return attributes
    data, axis, parts = node.type_of(0), attributes["axis"], node.results
    shape = () if data is None else shape_of(data, "Split")
    size = shape[axis] if isinstance(axis, int) and -len(shape) <= axis < len(shape) else None
    if not isinstance(size, int) or not parts:
        raise TypeInferenceError(f"Split: equal parts along axis {axis!r} of {data}")

    part = -(-size // parts)
    last = size - part * (parts - 1)
    if last < 0:
        raise TypeInferenceError(f"Split: {size} elements in {parts} equal parts")
    return attributes | {"split": (*(part,) * (parts - 1), last)}


def _complete_slice(attributes: dict[str, AttributeValue], node: OnnxNode) -> Attributes:
    """Axes and steps, which are the first axes and ones where none are named."""
    count = len(ints(attributes["starts"]))
    return {"axes": tuple(range(count)), "steps": (1,) * count, **attributes}


def _complete_pad(attributes: dict[str, AttributeValue], node: OnnxNode) -> Attributes:
    """The pads of all axes, where they are given for some."""
    if "axes" not in attributes:
        return attributes
    rank = _rank(node, "Pad")
    pads, axes = ints(attributes["pads"]), ints(attributes.pop("axes"))
    places = [axis + rank if axis < 0 else axis for axis in axes]
    if len(pads) != 2 * len(axes) or len(set(places)) < len(axes) or any(not 0 <= p < rank for p in places):
        raise TypeInferenceError(f"Pad: {pads} for the axes {axes}")

    full = [0] * 2 * rank
    for given, place in enumerate(places):
        full[place], full[rank + place] = pads[given], pads[len(axes) + given]
    return attributes | {"pads": tuple(full)}


@dataclass(frozen=True, kw_only=True)
class _JointForm(OnnxForm):
    """Writes the axis from the front: ONNX Runtime keeps images blocked (`ops/blocking.py`) on axis 1, not on -3."""

    def write(self, attributes: Attributes, opset: int, operand: TensorType | None) -> Written:
        axis = attributes["axis"]
        if operand is not None and operand.rank is not None and isinstance(axis, int):
            attributes = {**attributes, "axis": axis % operand.rank}
        return super().write(attributes, opset, operand)


_MOVED = Traits(uses=(carries(0),))
_ARRANGED = SizeArithmetic.WHOLE | SizeArithmetic.DYNAMIC

OPERATORS = (
    Operator(
        "Transpose",
        _infer_transpose,
        lambda domain, attributes, x: (domain.structural(lambda v: v.transpose(ints(attributes["perm"])), x[0]),),
        since=1,
        arity=(1, 1),
        required=("perm",),
        algebra=Algebra.NOTHING,
        traits=replace(_MOVED, fusion=Fusion.TRANSPOSE, size_arithmetic=SizeArithmetic.WHOLE),
        onnx=OnnxForm(complete=_reversing),
        attribute_groups={"permutation": ("perm",)},
    ),
    Operator(
        "Concat",
        _infer_concat,
        _concat,
        since=4,
        arity=(1, 64),
        required=("axis",),
        algebra=Algebra.NOTHING,
        traits=Traits(size_arithmetic=_ARRANGED, uses=(carries_all,)),
        onnx=_JointForm(axes="axis"),
        attribute_groups={"axis": ("axis",)},
    ),
    Operator(
        "Split",
        _infer_split,
        _split,
        since=2,
        arity=(1, 1),
        required=("split",),
        defaults={"axis": 0},
        algebra=Algebra.NOTHING,
        traits=_MOVED,
        onnx=OnnxForm(
            parameters=(Parameter("split", 1, since=13, required=False),),
            axes="axis",
            ignored=frozenset({"num_outputs"}),
            complete=_complete_split,
        ),
        attribute_groups={"axis": ("axis",), "partition": ("split",)},
    ),
    Operator(
        "Slice",
        _infer_slice,
        _slice,
        since=10,
        arity=(1, 1),
        required=("axes", "starts", "ends", "steps"),
        algebra=Algebra.NOTHING,
        traits=replace(_MOVED, size_arithmetic=_ARRANGED, type_by_sizes=sliced),
        onnx=OnnxForm(
            parameters=(
                Parameter("starts", 1, since=10),
                Parameter("ends", 2, since=10),
                Parameter("axes", 3, since=10, required=False),
                Parameter("steps", 4, since=10, required=False),
            ),
            axes="axes",
            complete=_complete_slice,
        ),
        attribute_groups={"axes": ("axes",), "extent": ("ends", "starts", "steps")},
    ),
    Operator(
        "Gather",
        _infer_gather,
        _gather,
        since=1,
        arity=(2, 2),
        defaults={"axis": 0},
        algebra=Algebra.NOTHING,
        traits=Traits(selects=True, size_arithmetic=_ARRANGED, uses=(looks_up(table=0, index=1), carries(0))),
        onnx=OnnxForm(axes="axis"),
        attribute_groups={"axis": ("axis",)},
    ),
    Operator(
        "Pad",
        _infer_pad,
        _pad,
        since=11,
        arity=(1, 1),
        required=("pads",),
        defaults={"mode": "constant", "constant_value": 0.0},
        algebra=Algebra.NOTHING,
        traits=replace(_MOVED, fusion=Fusion.PAD),
        onnx=OnnxForm(
            parameters=(
                Parameter("pads", 1, since=11),
                Parameter("constant_value", 2, since=11, required=False, scalar=True),
                Parameter("axes", 3, since=18, required=False),
            ),
            complete=_complete_pad,
        ),
    ),
    Operator(
        "Cast",
        _infer_cast,
        _cast,
        since=6,
        arity=(1, 1),
        required=("to",),
        traits=Traits(
            converts=True,
            size_arithmetic=_ARRANGED | SizeArithmetic.ROUNDING,
            uses=(converted, overflows, carries(0)),
        ),
        onnx=OnnxForm(element_type="to", harmless={"saturate": 1}),
    ),
)
