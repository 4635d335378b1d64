"""The forms of an operator: as each opset writes it, and the one canonical form in which rules see it.

In the canonical form everything but tensors is an attribute: Reshape's shape was an attribute until opset 4 and is an
operand since 5; Split's sizes moved in 13, the reductions' axes in 13 or 18. Axes count from the end, and what ONNX
lets a model leave out is written out. An example, from an operator of opset 17 and back:

    Split(x, sizes) {axis=1}, sizes the weight [2, 2], x of rank 3   ->   Split(x) {axis=-2, split=(2, 2)}

Most of it is declared (`parameters`, `axes`, ...); what depends on the operands is the hook `complete`. Nothing here
knows the onnx package: a node is read through `OnnxNode`, which `onnx_io` makes of a NodeProto.

The invariant: what `read` makes of a node, `write` gives back with the same meaning, in any opset with the operator.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes, AttributeValue
from rlflow.ir.tensor_type import Dimension, TensorType

_AXES_FROM_THE_END_SINCE = 13
"""From this opset on every operator of ai.onnx takes negative axes."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """Attribute `name` of the canonical form, which since opset `since` is operand number `operand`: a list of int64,
    or a `scalar` of the data's element type, or of one of `dtypes`. `dynamic` sizes may also be computed when the model
    runs.
    """

    name: str
    operand: int
    since: int
    required: bool = True
    scalar: bool = False
    dtypes: tuple[str, ...] = ()
    dynamic: bool = False

    def dtype_beside(self, data: TensorType | None) -> str:
        """The element type in which it is written."""
        if self.dtypes:
            return self.dtypes[0]
        return data.dtype if self.scalar and data is not None else "int64"


class OnnxNode(Protocol):
    """A node as a model writes it. Operands are named by their places."""

    @property
    def opset(self) -> int:
        """The model's version of ai.onnx."""

    @property
    def attributes(self) -> Mapping[str, AttributeValue | None]:
        """The attributes; None for a value that no understood operator has, such as a graph."""

    @property
    def results(self) -> int:
        """The number of outputs, those that nobody reads among them."""

    def is_given(self, place: int) -> bool:
        """Return True unless the operand is left out."""

    def type_of(self, place: int) -> TensorType | None:
        """The operand's type, None where the operand is left out or its type not known."""

    def constant(self, place: int) -> np.ndarray | None:
        """The operand's value, None where it is no weight."""

    def dynamic_shape(self, place: int, shape: Sequence[Dimension]) -> tuple[int, ...] | None:
        """The operand as the shape to which a tensor of `shape` is reshaped, where it is computed of dynamic dimensions
        and yet can be said in numbers: 0 copies a dimension, -1 is what is left.
        """

    def element_type(self, number: int) -> str:
        """The name of an element type, by ONNX's number."""


class Written(NamedTuple):
    """An operator as one opset writes it: attributes, and parameters that are operands."""

    attributes: dict[str, AttributeValue]
    parameters: list[tuple[Parameter, AttributeValue]]


Complete = Callable[[dict[str, AttributeValue], OnnxNode], Attributes]


def as_given(attributes: dict[str, AttributeValue], node: OnnxNode) -> Attributes:
    """The attributes of an operator that leaves nothing to be completed."""
    return attributes


@dataclass(frozen=True, kw_only=True)
class OnnxForm:
    """The reading and writing of one operator."""

    parameters: tuple[Parameter, ...] = ()

    axes: str = ""
    """The attribute that has axes of the first operand, -1 the last one whatever the rank."""

    axes_of_result: str = ""
    """The attribute that has axes of the result, as Unsqueeze does."""

    element_type: str = ""
    """The attribute that names an element type, which ONNX writes as a number."""

    ignored: frozenset[str] = frozenset()
    """Attributes that change nothing for the types and outputs that the library handles."""

    harmless: Mapping[str, AttributeValue] = field(default_factory=dict)
    """Attributes that change nothing at one value, which is their default. At another the node is not understood."""

    attributes_since: Mapping[str, int] = field(default_factory=dict)
    """First opsets of attributes that the operator had not from its beginning: before, it did as with 0, or ones."""

    flattening_before: int = 0
    """The first opset in which the operator works along its axis alone. Before, it worked on all axes from there on at
    once, which is the same on the last axis, and another axis was the default.
    """

    complete: Complete = as_given
    """Parameters whose default depends on the operands, written out; `TypeInferenceError` where they are not known."""

    def read(self, node: OnnxNode, defaults: Attributes) -> dict[str, AttributeValue]:
        """The attributes in the canonical form.

        `TypeInferenceError` or `KeyError` where the node says something that is not understood.
        """
        attributes = {**defaults, **self._understood(node.attributes)}
        attributes |= self._parameters_of(node)
        if self.element_type:
            attributes[self.element_type] = node.element_type(int(attributes[self.element_type]))  # type: ignore[arg-type]

        operand = node.type_of(0)
        if operand is None or operand.shape is None:
            raise TypeInferenceError("the rank of the first operand is not known")
        attributes = dict(self.complete(attributes, node))

        if self.axes:
            attributes[self.axes] = _from_the_end(attributes[self.axes], len(operand.shape))
        if node.opset < self.flattening_before and (attributes[self.axes] != -1 or self.axes not in node.attributes):
            raise TypeInferenceError("it works on several axes at once")
        return attributes

    def _understood(self, written: Mapping[str, AttributeValue | None]) -> dict[str, AttributeValue]:
        understood: dict[str, AttributeValue] = {}
        for name, value in written.items():
            if name in self.ignored or (name in self.harmless and value == self.harmless[name]):
                continue
            if value is None or name in self.harmless or not isinstance(name, str):
                raise TypeInferenceError(f"the attribute {name!r} is {value!r}, which is not understood")
            understood[name] = value
        return understood

    def _parameters_of(self, node: OnnxNode) -> dict[str, AttributeValue]:
        """The operands that are parameters."""
        read: dict[str, AttributeValue] = {}
        for parameter in self.parameters:
            if node.opset < parameter.since:
                continue
            if node.is_given(parameter.operand):
                read[parameter.name] = _value_of(parameter, node)
            elif parameter.required:
                raise TypeInferenceError(f"it has no operand for {parameter.name!r}")
        return read

    def data_operands(self, given: int, opset: int) -> int:
        """The number of operands that carry data rather than parameters, out of those given."""
        return min([given, *(p.operand for p in self.parameters if opset >= p.since)])

    def write(self, attributes: Attributes, opset: int, operand: TensorType | None) -> Written:
        """The operator in this opset, where its first operand is of this type. Element types are still names."""
        written = dict(attributes)
        if opset < _AXES_FROM_THE_END_SINCE and operand is not None and operand.rank is not None:
            _count_from_the_front(written, self.axes, operand.rank)
            added = written.get(self.axes_of_result)
            _count_from_the_front(written, self.axes_of_result, operand.rank + _length(added))

        parameters = [(p, written.pop(p.name)) for p in self.parameters if opset >= p.since and p.name in written]
        kept = {n: v for n, v in written.items() if not self._goes_without_saying(n, v, opset)}
        return Written(kept, parameters)

    def _goes_without_saying(self, name: str, value: AttributeValue, opset: int) -> bool:
        """Return True for an attribute that this opset does not have yet, at the value that it takes for granted."""
        granted = value == 0 or (isinstance(value, tuple) and set(value) == {1})
        return granted and opset < self.attributes_since.get(name, 0)


PLAIN = OnnxForm()
"""The form of an operator whose attributes ONNX writes as the library does, in every opset."""


def _value_of(parameter: Parameter, node: OnnxNode) -> AttributeValue:
    """An operand that is a parameter; `TypeInferenceError` where it is not known when the model is loaded."""
    data = node.type_of(0)
    if parameter.dynamic and data is not None and data.shape is not None:
        sizes = node.dynamic_shape(parameter.operand, data.shape)
        if sizes is not None:
            return sizes

    array = node.constant(parameter.operand)
    if array is None:
        raise TypeInferenceError(f"its {parameter.name!r} is no weight")
    if parameter.scalar:
        if not _is_scalar_of(array, data, parameter.dtypes):
            raise TypeInferenceError(f"its {parameter.name!r} is no scalar beside {data}")
        return int(array.item()) if parameter.dtypes and array.dtype.kind in "iu" else float(array.item())
    if array.dtype.kind not in "iu":
        raise TypeInferenceError(f"its {parameter.name!r} are no integers")
    return tuple(int(v) for v in array.reshape(-1))


def _is_scalar_of(array: np.ndarray, operand: TensorType | None, dtypes: Sequence[str]) -> bool:
    """Return True for an array of one element that neither widens nor deepens the operand that it meets."""
    if operand is None or operand.rank is None:
        return False
    return array.size == 1 and array.ndim <= operand.rank and array.dtype.name in (dtypes or (operand.dtype,))


def _from_the_end(value: AttributeValue, rank: int) -> AttributeValue:
    """An axis or axes of a tensor of this rank, -1 the last one."""
    axes = value if isinstance(value, tuple) else (value,)
    if any(not isinstance(a, int) or not -rank <= a < rank for a in axes):
        raise TypeInferenceError(f"axes {axes} of a tensor of rank {rank}")
    moved = tuple(a % rank - rank for a in axes if isinstance(a, int))
    return moved if isinstance(value, tuple) else moved[0]


def _count_from_the_front(written: dict[str, AttributeValue], name: str, rank: int) -> None:
    """Let the attribute, if there is one of this name, count axes as opsets do that do not count from the end."""
    value = written.get(name)
    if isinstance(value, tuple):
        written[name] = tuple(int(a) % rank for a in value)  # type: ignore[arg-type]
    elif isinstance(value, int):
        written[name] = value % rank


def _length(value: AttributeValue | None) -> int:
    return len(value) if isinstance(value, tuple) else 0
