"""Operators that look at the same memory under another shape: Reshape, Unsqueeze, Squeeze, Flatten; and Identity.

The result has the operand's elements in their order (`Traits.view`), so that one definition serves floats and the
finite field alike (`Domain.structural`), and running one costs no more than a launch. Shapes and axes that ONNX gives
as constant inputs are attributes here, as in `data_movement.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes, AttributeValue
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.ops.algebra import Algebra
from rlflow.ops.domain import Array, Domain
from rlflow.ops.onnx_form import OnnxForm, OnnxNode, Parameter
from rlflow.ops.readings import carries, result_shape_at
from rlflow.ops.schema import Operator, Types, ints, normal_axis, product, shape_of, static_size
from rlflow.ops.sizes import reshaped
from rlflow.ops.traits import SizeArithmetic, Traits


def _infer_reshape(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    shape = shape_of(inputs[0], "Reshape")
    wanted = ints(attributes["shape"])
    target = list(_copied(wanted, shape))
    if target.count(-1) > 1 or any(d < -1 for d in wanted):
        raise TypeInferenceError(f"Reshape: the shape {wanted} leaves more than one dimension to be inferred")
    if -1 in target:
        copied = [i for i, d in enumerate(wanted) if d == 0]
        left = [d for i, d in enumerate(shape) if i not in copied or d == 0]
        right = [d for i, d in enumerate(target) if d != -1 and (i not in copied or d == 0)]
        target[target.index(-1)] = _left_dimension(left, right)
    before, after = static_size(shape), static_size(target)
    if before is not None and after is not None and before != after:
        raise TypeInferenceError(f"Reshape: {shape} has {before} elements, {tuple(target)} has {after}")
    return (TensorType(inputs[0].dtype, tuple(target)),)


def _copied(target: tuple[int, ...], shape: tuple[Dimension, ...]) -> tuple[Dimension, ...]:
    """A 0 copies the operand's dimension (allowzero = 0)."""
    if any(d == 0 and i >= len(shape) for i, d in enumerate(target)):
        raise TypeInferenceError(f"Reshape: {target} copies a dimension that {shape} does not have")
    return tuple(shape[i] if d == 0 else d for i, d in enumerate(target))


def _left_dimension(left: list[Dimension], right: list[Dimension]) -> Dimension:
    """Return the dimension that -1 stands for, given those of operand and target that are not copied."""
    before, after = static_size(left), static_size(right)
    if after is None:
        return None
    if before is None:
        symbols = [d for d in left if not isinstance(d, int)]
        rest = static_size([d for d in left if isinstance(d, int)])
        return symbols[0] if len(symbols) == 1 and rest == after else None
    if after == 0 or before % after:
        raise TypeInferenceError(f"Reshape: {tuple(left)} does not divide by {tuple(right)}")
    return before // after


def _reshape(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    shape = _copied(ints(attributes["shape"]), x[0].shape)
    return (domain.structural(lambda v: v.reshape(shape), x[0]),)


def _infer_unsqueeze(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    shape = list(shape_of(inputs[0], "Unsqueeze"))
    axes = ints(attributes["axes"])
    rank = len(shape) + len(axes)
    places = sorted({normal_axis(a, rank, "Unsqueeze") for a in axes})
    if len(places) != len(axes):
        raise TypeInferenceError(f"Unsqueeze: axes {axes} name one axis twice")
    for axis in places:
        shape.insert(axis, 1)
    return (TensorType(inputs[0].dtype, tuple(shape)),)


def _unsqueeze(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    return (domain.structural(lambda v: np.expand_dims(v, ints(attributes["axes"])), x[0]),)


def _infer_squeeze(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    shape = shape_of(inputs[0], "Squeeze")
    dropped = {normal_axis(a, len(shape), "Squeeze") for a in ints(attributes["axes"])}
    if any(isinstance(shape[a], int) and shape[a] != 1 for a in dropped):
        raise TypeInferenceError(f"Squeeze: axes {sorted(dropped)} of {shape} are not all of length one")
    return (TensorType(inputs[0].dtype, tuple(d for i, d in enumerate(shape) if i not in dropped)),)


def _squeeze(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    axes = tuple({normal_axis(a, len(x[0].shape), "Squeeze") for a in ints(attributes["axes"])})
    return (domain.structural(lambda v: v.squeeze(axis=axes), x[0]),)


def _infer_flatten(attributes: Attributes, inputs: Types) -> tuple[TensorType, ...]:
    shape = shape_of(inputs[0], "Flatten")
    axis = _flatten_axis(attributes, len(shape))
    return (TensorType(inputs[0].dtype, (product(shape[:axis]), product(shape[axis:]))),)


def _flatten_axis(attributes: Attributes, rank: int) -> int:
    """The axis counted from the front; unlike other axes it may be the rank itself."""
    axis = attributes["axis"]
    return rank if axis == rank else normal_axis(axis, rank, "Flatten")


def _flatten(domain: Domain, attributes: Attributes, x: Sequence[Array]) -> tuple[Array, ...]:
    axis = _flatten_axis(attributes, len(x[0].shape))
    shape = (prod(x[0].shape[:axis]), prod(x[0].shape[axis:]))
    return (domain.structural(lambda v: v.reshape(shape), x[0]),)


def _complete_reshape(attributes: dict[str, AttributeValue], node: OnnxNode) -> Attributes:
    """The shape in numbers where the result's is known."""
    data = node.type_of(0)
    if data is None:
        raise TypeInferenceError("Reshape: an operand of unknown type")
    zero_is_zero = attributes.pop("allowzero", 0)
    if zero_is_zero and 0 in ints(attributes["shape"]) and node.constant(1) is not None:
        raise TypeInferenceError("Reshape: a 0 that copies no dimension")
    (result,) = _infer_reshape(attributes, [data])
    if not result.is_static or 0 in (result.shape or ()):
        return attributes
    return attributes | {"shape": result.shape}  # type: ignore[return-value]


def _complete_squeeze(attributes: dict[str, AttributeValue], node: OnnxNode) -> Attributes:
    """The axes as they are given: without any, sizes that are known only when the model runs would decide the rank."""
    if not attributes.get("axes"):
        raise TypeInferenceError("Squeeze: no axes")
    return attributes


_COUNTED = SizeArithmetic.WHOLE | SizeArithmetic.ROUNDING | SizeArithmetic.DYNAMIC
_VIEWED = Traits(view=True, uses=(carries(0),))

OPERATORS = (
    Operator(
        "Reshape",
        _infer_reshape,
        _reshape,
        since=5,
        arity=(1, 1),
        required=("shape",),
        algebra=Algebra.NOTHING,
        traits=Traits(
            view=True,
            size_arithmetic=_COUNTED,
            type_by_sizes=reshaped,
            uses=(result_shape_at(1), carries(0)),
        ),
        onnx=OnnxForm(parameters=(Parameter("shape", 1, since=5, dynamic=True),), complete=_complete_reshape),
        attribute_groups={"reshape": ("shape",)},
    ),
    Operator(
        "Unsqueeze",
        _infer_unsqueeze,
        _unsqueeze,
        since=1,
        arity=(1, 1),
        required=("axes",),
        algebra=Algebra.NOTHING,
        traits=replace(_VIEWED, size_arithmetic=_COUNTED),
        onnx=OnnxForm(parameters=(Parameter("axes", 1, since=13),), axes_of_result="axes"),
    ),
    Operator(
        "Squeeze",
        _infer_squeeze,
        _squeeze,
        since=1,
        arity=(1, 1),
        required=("axes",),
        algebra=Algebra.NOTHING,
        traits=replace(_VIEWED, size_arithmetic=_COUNTED),
        onnx=OnnxForm(
            parameters=(Parameter("axes", 1, since=13, required=False),), axes="axes", complete=_complete_squeeze
        ),
    ),
    Operator(
        "Flatten",
        _infer_flatten,
        _flatten,
        since=1,
        arity=(1, 1),
        defaults={"axis": 1},
        algebra=Algebra.NOTHING,
        traits=_VIEWED,
    ),
    Operator(
        "Identity",
        lambda attributes, inputs: (inputs[0],),
        lambda domain, attributes, x: (x[0],),
        since=1,
        arity=(1, 1),
        algebra=Algebra.NOTHING,
        traits=replace(_VIEWED, size_arithmetic=_COUNTED),
    ),
)
