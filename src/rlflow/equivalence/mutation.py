"""Mutants of a model: copies with one fault each, by which the inputs of a comparison are put to the test.

    for mutant in mutants(model):
        mutant.node, mutant.change      'relu_3', 'Relu left out'

Each operator is left out where its result has the type of an operand, swapped for its neighbour (`rlflow.ops.
neighbours`), and its bounds are moved, one at a time; if none of this can be done, its result is negated. Operators in
the bodies of control flow have mutants, too. What is known to change nothing is no mutant: a Relu of what is never
negative left out, a tiny number that guards a divisor.

Invariant: a mutant is a copy; the model is left as it is.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, helper, numpy_helper

from rlflow.ir.tensor_type import TensorType
from rlflow.onnx_io.element_type import from_type_proto
from rlflow.onnx_io.shapes.inference import with_types
from rlflow.ops import neighbours

_GUARD = 1e-4
"""A stored number below this is there to keep something from 0."""
_UNBOUNDED = 1e30
_NEW = "rlflow_mutant"
_NEGATED = frozenset("float16 float32 float64 int8 int32 int64".split())
"""Types that a Neg of ONNX Runtime takes."""
_NEGATED_AS_INT64 = frozenset("int16 uint8 uint16 uint32 uint64".split())

Address = tuple[int | str, ...]
Change = Callable[[GraphProto, int], None]


@dataclass(frozen=True, eq=False)
class Fault:
    """One fault that can be planted: its place, the name of its node, and what a report says of it."""

    address: Address
    node: str
    what: str
    plant: Change

    def planted_in(self, model: ModelProto) -> ModelProto:
        """Copy a model with this fault in it."""
        copy = ModelProto()
        copy.CopyFrom(model)
        *way, index = self.address
        graph = copy.graph
        for step in range(0, len(way), 2):
            graph = _bodies(graph.node[int(way[step])])[int(way[step + 1])]
        self.plant(graph, int(index))
        return copy

    def __str__(self) -> str:
        return f"{self.node} ({self.what})"


def faults(model: ModelProto) -> list[Fault]:
    """List the faults that can be planted in a model, in the order of its nodes."""
    return list(_Faults(model).of_graph(model.graph, ()))


def _bodies(node: NodeProto) -> list[GraphProto]:
    return [g for a in node.attribute for g in ([a.g] if a.type == AttributeProto.GRAPH else a.graphs)]


class _Faults:
    """The knowledge of a model by which its faults are listed."""

    def __init__(self, model: ModelProto) -> None:
        self.opset = next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 1)
        self.types = dict(_types_in(with_types(model).graph))
        self.stored: dict[str, np.ndarray] = {}
        self.made_by: dict[str, NodeProto] = {}
        self.readers: dict[str, list[str]] = defaultdict(list)
        self._know(model.graph)

    def _know(self, graph: GraphProto) -> None:
        for tensor in graph.initializer:
            if tensor.data_location != TensorProto.EXTERNAL:
                self.stored[tensor.name] = numpy_helper.to_array(tensor)
        for output in graph.output:
            self.readers[output.name].append("")
        for node in graph.node:
            for name in node.input:
                self.readers[name].append(node.op_type)
            for name in node.output:
                self.made_by[name] = node
            value = _number_of(node)
            if value is not None:
                self.stored[node.output[0]] = value
            for body in _bodies(node):
                self._know(body)

    def of_graph(self, graph: GraphProto, way: Address) -> Iterator[Fault]:
        for index, node in enumerate(graph.node):
            if not any(self.readers[name] for name in node.output if name):
                continue
            for number, body in enumerate(_bodies(node)):
                yield from self.of_graph(body, (*way, index, number))
            if _bodies(node) or _number_of(node) is not None:
                continue
            name = node.name or f"{node.op_type} of {node.output[0]!r}"
            for what, plant in list(self._of_node(node)) or list(self._negation(node)):
                yield Fault((*way, index), name, what, plant)

    def _of_node(self, node: NodeProto) -> Iterator[tuple[str, Change]]:
        if node.domain not in ("", "ai.onnx") or self._changes_nothing(node):
            return
        same = self._operand_like_result(node)
        if same and len(node.output) == 1 and node.op_type not in neighbours.INERT:
            yield f"{node.op_type} left out", self._swap("Identity", [same])
        yield from self._swaps(node)
        if node.op_type in neighbours.EXCHANGED:
            yield f"operands of {node.op_type} exchanged", _exchanged
        yield from self._moved_bounds(node)

    def _changes_nothing(self, node: NodeProto) -> bool:
        """Return True where leaving the node out, or swapping it, is known to make no difference that shows."""
        stored = [self.stored[name] for name in node.input if name in self.stored]
        numbers = [values for values in stored if values.dtype.kind in "fiu" and values.size]
        if any((values == neighbours.NEUTRAL.get(node.op_type)).all() for values in numbers):
            return True
        if node.op_type in neighbours.GUARDS and any(
            0 < np.abs(v).max() <= _GUARD for v in numbers if v.dtype.kind == "f"
        ):
            return True
        if node.op_type in neighbours.OF_ONE and self._operand_like_result(node):
            return True
        if node.op_type in neighbours.ALONE and len(node.input) == 1 and not node.attribute:
            return True
        if node.op_type in neighbours.BENT_AT_ZERO and self._is_never_negative(node.input[0]):
            return True
        return node.op_type in neighbours.ORDERLY and set(self.readers[node.output[0]]) <= neighbours.ASK_FOR_ORDER

    def _is_never_negative(self, name: str) -> bool:
        maker = self.made_by.get(name)
        if maker is None:
            return False
        if maker.op_type in neighbours.KEEP_SIGNS:
            return self._is_never_negative(maker.input[0])
        bound = (
            self.stored.get(maker.input[place])
            if 0 < (place := neighbours.AT_LEAST.get(maker.op_type, 0)) < len(maker.input)
            else None
        )
        return maker.op_type in neighbours.NEVER_NEGATIVE or (bound is not None and bool((bound >= 0).all()))

    def _operand_like_result(self, node: NodeProto) -> str:
        """The first operand that is computed and has the type of the result, or ""."""
        wanted = self.types.get(node.output[0])
        if wanted is None or wanted.shape is None:
            return ""
        names = (n for n in node.input if n and n not in self.stored and self.types.get(n) == wanted)
        return next(names, "")

    def _swaps(self, node: NodeProto) -> Iterator[tuple[str, Change]]:
        others = [next((n for n in neighbours.NEIGHBOURS.get(node.op_type, ()) if self._may_become(node, n)), "")]
        operand = self.types.get(node.input[0]) if node.input else None
        if operand is not None and not operand.is_float:
            others.append(neighbours.ON_EQUALITY.get(node.op_type, ""))
        for other in filter(None, others):
            yield f"{node.op_type} became {other}", self._swap(other, list(node.input))

    def _swap(self, operator: str, operands: list[str]) -> Change:
        """Turn a node into another operator on these operands, with the attributes that this one knows."""
        known: Any = onnx.defs.get_schema(operator, self.opset).attributes.keys()

        def plant(graph: GraphProto, index: int) -> None:
            node = graph.node[index]
            kept = [attribute for attribute in node.attribute if attribute.name in known]
            node.op_type, node.domain = operator, ""
            del node.input[:], node.attribute[:]
            node.input.extend(operands)
            node.attribute.extend(kept)

        return plant

    def _may_become(self, node: NodeProto, other: str) -> bool:
        try:
            schema = onnx.defs.get_schema(other, self.opset)
        except onnx.defs.SchemaError:
            return False
        integers = any(t is not None and not t.is_float for t in map(self.types.get, node.input))
        if other in neighbours.ENDS_PROCESSES and integers:
            return False
        needed = {attribute.name for attribute in node.attribute} & {"axes", "axis"}
        return schema.min_input <= len(node.input) <= schema.max_input and needed <= schema.attributes.keys()

    def _moved_bounds(self, node: NodeProto) -> Iterator[tuple[str, Change]]:
        places, names = neighbours.BOUNDS.get(node.op_type, ((), ()))
        for place in places:
            value = self.stored.get(node.input[place]) if place < len(node.input) else None
            if value is not None and value.size == 1 and value.dtype.kind in "fiu":
                moved = _moved(value, -1 if (node.op_type, place) in neighbours.DOWNWARD else 1)
                if moved is not None:
                    yield f"{value.item():g} became {moved.item():g}", _with_operand(place, moved)
        for attribute in node.attribute:
            if attribute.name in names and attribute.type == AttributeProto.FLOAT:
                sign = -1 if (node.op_type, attribute.name) in neighbours.DOWNWARD else 1
                moved = _moved(np.float32(attribute.f), sign)
                if moved is not None:
                    yield f"{attribute.f:g} became {moved.item():g}", _with_attribute(attribute.name, float(moved))

    def _negation(self, node: NodeProto) -> Iterator[tuple[str, Change]]:
        """The result of a node that has no other mutant, turned round."""
        output = next(name for name in node.output if name and self.readers[name])
        kind = self.types.get(output)
        if kind is not None and kind.dtype in {"bool", *_NEGATED, *_NEGATED_AS_INT64}:
            yield f"result of {node.op_type} negated", lambda graph, index: _negate(graph, index, output, kind.dtype)


def _types_in(graph: GraphProto) -> Iterator[tuple[str, TensorType | None]]:
    """Yield the types that a graph and the bodies in it declare, by name."""
    for value in (*graph.value_info, *graph.input, *graph.output):
        yield value.name, from_type_proto(value.type)
    for node in graph.node:
        for body in _bodies(node):
            yield from _types_in(body)


def _number_of(node: NodeProto) -> np.ndarray | None:
    """The value of a node that holds one."""
    if node.op_type != "Constant" or not node.attribute:
        return None
    value = helper.get_attribute_value(node.attribute[0])
    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.array(value)


def _exchanged(graph: GraphProto, index: int) -> None:
    node = graph.node[index]
    left, right = neighbours.EXCHANGED[node.op_type]
    node.input[left], node.input[right] = node.input[right], node.input[left]


def _moved(value: np.ndarray | np.generic, sign: int) -> np.ndarray | None:
    """A bound moved by half of it, and by no less than a half or, if whole, than 1; None where it bounds nothing."""
    array = np.asarray(value)
    number = float(array.reshape(()))
    if not math.isfinite(number) or abs(number) > _UNBOUNDED:
        return None
    if array.dtype.kind in "iu":
        limits = np.iinfo(array.dtype)
        moved = int(number) + sign * max(1, int(abs(number)) // 2)
        return np.full_like(array, moved) if limits.min < moved < limits.max else None
    return np.asarray(array + array.dtype.type(sign * max(abs(number) / 2, 0.5)), array.dtype)


def _with_operand(place: int, value: np.ndarray) -> Change:
    def plant(graph: GraphProto, index: int) -> None:
        graph.node[index].input[place] = _NEW
        constant = helper.make_node("Constant", [], [_NEW], value=numpy_helper.from_array(value))
        graph.node.insert(index, constant)

    return plant


def _with_attribute(name: str, value: float) -> Change:
    def plant(graph: GraphProto, index: int) -> None:
        for attribute in graph.node[index].attribute:
            if attribute.name == name:
                attribute.f = value

    return plant


def _negate(graph: GraphProto, index: int, output: str, dtype: str) -> None:
    """Rename the result, and compute its opposite under its name."""
    node = graph.node[index]
    place = list(node.output).index(output)
    node.output[place] = _NEW
    if dtype == "bool":
        steps: list[tuple[str, dict[str, Any]]] = [("Not", {})]
    elif dtype in _NEGATED:
        steps = [("Neg", {})]
    else:
        element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        steps = [("Cast", {"to": TensorProto.INT64}), ("Neg", {}), ("Cast", {"to": element})]
    names = [_NEW, *(f"{_NEW}_{step}" for step in range(1, len(steps))), output]
    for step, (operator, attributes) in enumerate(steps):
        graph.node.insert(index + 1 + step, helper.make_node(operator, [names[step]], [names[step + 1]], **attributes))
