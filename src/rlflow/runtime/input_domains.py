"""What a model does with its inputs, as far as it says which values make sense: read off the operators they reach."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from rlflow.onnx_io.shapes.inference import infer_types

_Number = TypeVar("_Number", int, float)
_ANYTHING = (-math.inf, math.inf)
_POSITIVE = (0.0, math.inf)


@dataclass(frozen=True)
class Use:
    """What is known of a value from those who read it.

    `index` is the range of integers, ends included, with which the model runs at all; None if it indexes nothing.
    `domain` is the interval of numbers on which it is defined. `is_mask` says that it is 1 for what counts and 0 for
    what does not, `is_complement` the other way round, `is_divisor` that it may not be zero, and `is_whole` that every
    value of an integer type is meant: pixels and quantised numbers. `sizes` are the dimensions that it must hold, where
    it is the shape of a value whose type is declared.
    """

    index: tuple[int, int] | None = None
    domain: tuple[float, float] = _ANYTHING
    is_mask: bool = False
    is_complement: bool = False
    is_divisor: bool = False
    is_whole: bool = False
    sizes: tuple[int | str, ...] | None = None

    def __or__(self, other: "Use") -> "Use":
        """What two readers make of a value: ranges meet, purposes add up."""
        return Use(
            _meet(self.index, other.index) if self.index and other.index else self.index or other.index,
            _meet(self.domain, other.domain),
            self.is_mask or other.is_mask,
            self.is_complement or other.is_complement,
            self.is_divisor or other.is_divisor,
            self.is_whole or other.is_whole,
            self.sizes if other.sizes is None else other.sizes,
        )

    def required(self) -> "Use":
        """Without which the model does not run, and nothing of what only makes sense."""
        return Use(index=self.index, sizes=self.sizes)


NO_USE = Use()

# Operators whose first output has the values of these operands (None: all), only elsewhere, repeated or left out.
_CARRIERS: dict[str, tuple[int, ...] | None] = {
    **dict.fromkeys(
        "Cast Compress Expand Flatten Gather GatherElements GatherND Identity MaxPool Pad ReduceMax ReduceMin "
        "Reshape Slice Split Squeeze Tile Transpose Unsqueeze".split(),
        (0,),
    ),
    "Where": (1, 2),
    "Concat": None,
}
# Operators that move a value into bounds: what it indexes is still the same table.
_BOUNDING: dict[str, tuple[int, ...] | None] = {"Clip": (0,), "Max": None, "Min": None}
_AVERAGES = frozenset("AveragePool GlobalAveragePool ReduceMean ReduceSum".split())
_DOMAINS: dict[str, tuple[float, float]] = {
    "Log": _POSITIVE,
    "Sqrt": _POSITIVE,
    "Asin": (-1.0, 1.0),
    "Acos": (-1.0, 1.0),
    "Atanh": (-1.0, 1.0),
    "Acosh": (1.0, math.inf),
}
# Operators that look rows up: pairs of (operand of the table, operand of the indices).
_LOOKUPS: dict[str, tuple[tuple[int, int], ...]] = {
    "Gather": ((0, 1),),
    "GatherElements": ((0, 1),),
    "GatherND": ((0, 1),),
    "ScatterElements": ((0, 1),),
    "ScatterND": ((0, 1),),
    "EmbedLayerNormalization": ((2, 0), (3, 8), (4, 1)),
}
# Operators that read the shape of their result, and where.
_SHAPES = {"ConstantOfShape": 0, "Expand": 1, "Reshape": 1}
_MIN_OVER_AXES = frozenset({"GatherND", "ScatterND"})
_UNKNOWN_TABLE_ROWS = 2
_MASKS = {"Attention": 3, "EmbedLayerNormalization": 7, "MultiHeadAttention": 4, "QAttention": 5}
_DIVISORS = {"Div": 1, "Mod": 1, "Reciprocal": 0}
_LENGTHS = {"GRU": 4, "LSTM": 4, "RNN": 4, "ReverseSequence": 1}
_QUANTISED: dict[str, tuple[int, ...]] = {
    "ConvInteger": (0,),
    "DequantizeLinear": (0,),
    "MatMulInteger": (0, 1),
    "QLinearConv": (0,),
    "QLinearMatMul": (0, 3),
}
_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE})
# A number added before a Softmax that leaves nothing of what it is added to.
_HIDING = -1e3


def uses_of(model: ModelProto) -> dict[str, Use]:
    """Use of the values by name; those of which nothing is known are absent."""
    uses = _Reading(model).uses
    return {name: use for name, use in uses.items() if use != NO_USE}


class _Reading:
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
            for place, use in (*self._own(node, result), *_handed_on(node, result)):
                if place < len(node.input) and use != NO_USE:
                    self._add(node.input[place], use)
            self._read_bodies(node)

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

    def _own(self, node: NodeProto, result: Use) -> Iterator[tuple[int, Use]]:
        """What the node itself makes of its operands, by their places."""
        for table, index in _LOOKUPS.get(node.op_type, ()):
            if max(table, index) < len(node.input) and node.input[index] not in self.stored:
                yield index, Use(index=(0, self._rows(node, node.input[table]) - 1))
        if node.op_type in _LENGTHS and len(node.input) > _LENGTHS[node.op_type]:
            yield _LENGTHS[node.op_type], Use(index=(1, self._steps(node)))
        if node.op_type in _SHAPES and node.output[0] in self.declared:
            yield _SHAPES[node.op_type], Use(sizes=self.declared[node.output[0]])
        if node.op_type in _DOMAINS:
            yield 0, Use(domain=_DOMAINS[node.op_type])
        if node.op_type in _MASKS:
            yield _MASKS[node.op_type], Use(is_mask=True)
        if node.op_type in _DIVISORS:
            yield _DIVISORS[node.op_type], Use(is_divisor=True)
        for place in _QUANTISED.get(node.op_type, ()):
            yield place, Use(is_whole=True)
        if node.op_type == "Cast":
            yield 0, _before_casting(node)
        if len(node.input) > 1:
            left, right = map(self._number, node.input[:2])
            yield 0, _beside(node.op_type, right, result)
            yield 1, _after(node.op_type, left, result)

    def _number(self, name: str) -> float | None:
        """The value of a stored scalar."""
        tensor = self.stored.get(name)
        if tensor is None or tensor.data_location == TensorProto.EXTERNAL or math.prod(tensor.dims) != 1:
            return None
        values = numpy_helper.to_array(tensor)
        return float(values.reshape(())) if np.issubdtype(values.dtype, np.number) else None

    def _steps(self, node: NodeProto) -> int:
        """Of the sequences that a node reads, 1 where they are not known."""
        shape, time = self._shape(node.input[0]), _integer(node, "time_axis", "layout")
        return max(1, shape[time]) if time < len(shape) else 1

    def _rows(self, node: NodeProto, table: str) -> int:
        shape = self._shape(table)
        if not shape:
            return _UNKNOWN_TABLE_ROWS
        if node.op_type in _MIN_OVER_AXES:
            return min(shape) or _UNKNOWN_TABLE_ROWS
        return shape[_integer(node, "axis")] or _UNKNOWN_TABLE_ROWS

    def _shape(self, name: str) -> tuple[int, ...]:
        """0 where a dimension is not known. What is not declared is inferred, which takes a while."""
        if name not in self.shapes and not self.is_inferred:
            self.is_inferred = True
            for value, kind in infer_types(self.model).items():
                if kind is not None and kind.shape is not None:
                    self.shapes.setdefault(value, tuple(d if isinstance(d, int) else 0 for d in kind.shape))
        return self.shapes.get(name, ())


def _handed_on(node: NodeProto, result: Use) -> Iterator[tuple[int, Use]]:
    """What the reader of the result makes of the node's operands."""
    if node.op_type in _CARRIERS:
        for place in _places(node, _CARRIERS[node.op_type]):
            yield place, result
    elif node.op_type in _BOUNDING:
        for place in _places(node, _BOUNDING[node.op_type]):
            yield place, Use(index=result.index)
    elif node.op_type in _AVERAGES and result.domain == _POSITIVE:
        yield 0, Use(domain=_POSITIVE)


def _places(node: NodeProto, operands: tuple[int, ...] | None) -> Sequence[int]:
    return range(len(node.input)) if operands is None else operands


def _beside(op: str, number: float | None, result: Use) -> Use:
    """What is known of a first operand beside this stored scalar, if it is one."""
    if op == "Pow" and (number is None or not number.is_integer()):
        return Use(domain=_POSITIVE)
    if number is None:
        return NO_USE
    if op == "OneHot":
        return Use(index=(0, max(int(number), 1) - 1))
    if op == "Equal" and number in (0, 1):
        return Use(is_mask=True)
    if op == "Sub":
        return _before_adding(-number, result)
    if op == "Div" and number > 0 and result.domain == _POSITIVE:
        return Use(domain=_POSITIVE)
    return _after(op, number, result) if op in ("Add", "Mul") else NO_USE


def _after(op: str, number: float | None, result: Use) -> Use:
    """What is known of a second operand after this stored scalar, if it is one."""
    if op == "Sub" and number == 1 and result.is_complement:
        return Use(is_mask=True)
    if op == "Mul" and number is not None and number <= _HIDING:
        return Use(is_complement=True)
    if op == "Mul" and number is not None and number > 0 and result.domain == _POSITIVE:
        return Use(domain=_POSITIVE)
    return _before_adding(number, result) if op == "Add" and number is not None else NO_USE


def _before_adding(number: float, result: Use) -> Use:
    """What a value must be so that the sum with a number is as wanted."""
    if result.is_mask or result.is_complement:  # (m - 1) * -1e4
        return Use(is_mask=number == -1)
    low, high = result.domain
    index = None
    if result.index is not None:
        least, most = (int(end - number) for end in result.index)
        index = (max(least, 0), max(most, 0))
    return Use(index, (low if number >= 0 and low == 0 else low - number, high - number))


def _before_casting(node: NodeProto) -> Use:
    target = _integer(node, "to")
    return Use(is_whole=target in _FLOATS, is_mask=target == TensorProto.BOOL)


def _integer(node: NodeProto, *names: str) -> int:
    """An attribute under one of these names, 0 by default."""
    return next((int(attribute.i) for attribute in node.attribute if attribute.name in names), 0)


def _meet(left: tuple[_Number, _Number], right: tuple[_Number, _Number]) -> tuple[_Number, _Number]:
    """The common part of two ranges; the first where there is none."""
    low, high = max(left[0], right[0]), min(left[1], right[1])
    return (low, high) if low <= high else left
