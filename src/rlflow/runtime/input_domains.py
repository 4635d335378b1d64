"""Domains of a model's inputs: which values make sense, read off the operators that they reach.

A model whose input goes through an Identity into the indices of a Gather of 30 rows wants numbers from 0 to 29. The
walk goes from the outputs to the inputs, and through the bodies of control flow; what each operator makes of its
operands is said where the operator is defined (`ops/use.py` has the words for it).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from rlflow.onnx_io.element_type import dtype_name
from rlflow.onnx_io.shapes.inference import infer_types
from rlflow.ops.registry import NO_TRAITS, TRAITS_BY_TYPE
from rlflow.ops.use import NO_USE, Use

_NUMBERS = frozenset({AttributeProto.FLOAT, AttributeProto.FLOATS, AttributeProto.INT, AttributeProto.INTS})
_MOST_STORED = 4096
_MOST_VALUES = 8
"""Of a stored operand: as many different values are told, of operands that are not larger."""


def uses_of(model: ModelProto) -> dict[str, Use]:
    """Return the use of each value by its name; values of which nothing is known are absent."""
    uses = _Walk(model).uses
    return {name: use for name, use in uses.items() if use != NO_USE}


class _Walk:
    """One pass from the outputs to the inputs. Names are unique across a model and its subgraphs."""

    def __init__(self, model: ModelProto) -> None:
        self.model = model
        self.uses: dict[str, Use] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.stored: dict[str, TensorProto] = {}
        self.declared: dict[str, tuple[int | str, ...]] = {}
        self.is_inferred = False
        self._read(model.graph)

    def _read(self, graph: GraphProto) -> None:
        self._declare(graph)
        for node in reversed(graph.node):
            result = NO_USE
            for output in node.output:
                result |= self.uses.get(output, NO_USE)
            for place, use in self._demands(node, result):
                if place < len(node.input) and use != NO_USE:
                    self._add(node.input[place], use)
            self._read_bodies(node)

    def _demands(self, node: NodeProto, result: Use) -> Iterator[tuple[int, Use]]:
        """List what the node and the readers of its result make of its operands, by their places."""
        traits, application = TRAITS_BY_TYPE.get(node.op_type, NO_TRAITS), _Node(node, self)
        silent = set(range(len(node.input)))
        for reading in traits.uses:
            for place, use in reading(application, result):
                silent.discard(place)
                yield place, use
        for place in range(len(node.input)):
            if traits.elementwise:
                yield place, result.behind()
            elif traits.accumulates or traits.windowed:
                yield place, replace(result.behind(), is_summed=True)
            elif place in silent:  # what becomes of it is not known
                yield place, replace(result.behind(), is_count=True, is_mixed=True)

    def _add(self, name: str, use: Use) -> None:
        self.uses[name] = self.uses.get(name, NO_USE) | use

    def _declare(self, graph: GraphProto) -> None:
        for value in (*graph.input, *graph.value_info):
            self.shapes[value.name] = tuple(max(d.dim_value, 0) for d in value.type.tensor_type.shape.dim)
        for value in (*graph.value_info, *graph.output):
            dimensions = value.type.tensor_type.shape.dim
            self.declared[value.name] = tuple(
                d.dim_value if d.HasField("dim_value") else d.dim_param for d in dimensions
            )
        constants = [
            (node.output[0], attribute.t)
            for node in graph.node
            for attribute in node.attribute
            if node.op_type == "Constant" and attribute.HasField("t")
        ]
        constants += [
            (node.output[0], numpy_helper.from_array(np.array(helper.get_attribute_value(attribute))))
            for node in graph.node
            for attribute in node.attribute
            if node.op_type == "Constant" and attribute.type in _NUMBERS
        ]
        for name, tensor in (*constants, *((tensor.name, tensor) for tensor in graph.initializer)):
            self.shapes[name] = tuple(tensor.dims)
            self.stored[name] = tensor

    def _read_bodies(self, node: NodeProto) -> None:
        """Results of a body are those of the node, and what it is given are the node's operands."""
        first_result = 1 if node.op_type == "Loop" else 0  # before it, the condition
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                for inner, outer in zip(list(body.output)[first_result:], node.output, strict=False):
                    self._add(inner.name, self.uses.get(outer, NO_USE))
                self._read(body)
                for inner, outer in zip(body.input, node.input, strict=False):
                    self._add(outer, self.uses.get(inner.name, NO_USE))

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape, with 0 where a dimension is not known; what is not declared is inferred, which takes a while."""
        if name not in self.shapes and not self.is_inferred:
            self.is_inferred = True
            for value, tensor_type in infer_types(self.model).items():
                if tensor_type is not None and tensor_type.shape is not None:
                    known = tuple(d if isinstance(d, int) else 0 for d in tensor_type.shape)
                    self.shapes.setdefault(value, known)
        return self.shapes.get(name, ())


@dataclass(frozen=True)
class _Node:
    """A node as the readings of `ops/use.py` ask about it."""

    proto: NodeProto
    walk: _Walk

    @property
    def operands(self) -> int:
        return len(self.proto.input)

    @property
    def declared_dimensions(self) -> tuple[int | str, ...] | None:
        return self.walk.declared.get(self.proto.output[0])

    def is_stored(self, place: int) -> bool:
        return self.proto.input[place] in self.walk.stored

    def number(self, place: int) -> float | None:
        tensor = self.walk.stored.get(self.proto.input[place])
        if tensor is None or tensor.data_location == TensorProto.EXTERNAL or math.prod(tensor.dims) != 1:
            return None
        values = numpy_helper.to_array(tensor)
        return float(values.reshape(())) if np.issubdtype(values.dtype, np.number) else None

    def numbers(self, place: int) -> list[float]:
        tensor = self.walk.stored.get(self.proto.input[place]) if place < self.operands else None
        if tensor is None or tensor.data_location == TensorProto.EXTERNAL or math.prod(tensor.dims) > _MOST_STORED:
            return []
        values = numpy_helper.to_array(tensor)
        if not (np.issubdtype(values.dtype, np.number) or values.dtype == np.bool_):
            return []
        different = np.unique(values)
        return [float(v) for v in different[:: -(-len(different) // _MOST_VALUES) or 1]]

    def range_of(self, place: int) -> tuple[float, float]:
        tensor = self.walk.stored.get(self.proto.input[place])
        dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type if tensor is not None else TensorProto.UINT8)
        if dtype.kind not in "iu":
            return 0.0, 255.0
        return float(np.iinfo(dtype).min), float(np.iinfo(dtype).max)

    def shape(self, place: int) -> tuple[int, ...]:
        return self.walk.shape(self.proto.input[place])

    def real(self, name: str, default: float) -> float:
        return next((float(attribute.f) for attribute in self.proto.attribute if attribute.name == name), default)

    def integer(self, *names: str) -> int:
        return next((int(attribute.i) for attribute in self.proto.attribute if attribute.name in names), 0)

    def element_type(self, name: str) -> str:
        return dtype_name(self.integer(name))
