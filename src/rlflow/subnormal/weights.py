"""The weights of a model wherever they are held, with what their readers make of them.

    for weight in weights_of(model):
        weight.name, weight.values(), weight.is_coefficient

Weights are initializers and what Constants hold, dense or sparse, in the main graph and in the bodies of control flow.
A weight that is transposed, sliced or cast on its way is read by those who read the result. `is_coefficient` says that
all of them only multiply and add it (`ops/coefficients.py`); who reads an output of a graph, nobody knows.

Invariant: a model and a copy of it have the same weights, in the same order.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper

from rlflow.onnx_io.node_proto import ONNX_DOMAINS, captured_names, qualified_name
from rlflow.onnx_io.payload import InitializerPayload
from rlflow.ops.coefficients import COEFFICIENTS, PASSED_ON, SCALED, SCALINGS

Holder: TypeAlias = TensorProto | AttributeProto
"""The part of a model that holds a weight: a tensor, or the floats of an attribute."""
_STORED_IN = ("float_data", "double_data", "int32_data", "external_data")


@dataclass(frozen=True, eq=False)
class Weight:
    """A weight in the model that holds it, of which values can be read and written.

    `element` is the float type in which its `readers` sum it, its own unless it is cast. `factors` are those by which
    ONNX Runtime multiplies it along its first axis when it opens the model, if it does.
    """

    name: str
    holder: Holder
    readers: int
    is_coefficient: bool
    element: int
    factors: np.ndarray | None = None

    @property
    def stored(self) -> int:
        """The element type in which the model holds it."""
        return _element(self.holder)

    def values(self) -> np.ndarray:
        """Return the values, mapped from their file where they lie in one."""
        return _values(self.holder)

    def products(self) -> np.ndarray:
        """Return the values with the factors."""
        values = self.values()
        if self.factors is None or self.factors.shape != values.shape[:1]:
            return values
        with np.errstate(all="ignore"):
            return values * self.factors.reshape(-1, *(1,) * (values.ndim - 1))

    def store(self, values: np.ndarray) -> None:
        """Let the model hold other values of the same type and shape."""
        if isinstance(self.holder, AttributeProto):
            self.holder.floats[:] = values.tolist()
            return
        for name in _STORED_IN:
            self.holder.ClearField(name)
        self.holder.data_location = TensorProto.DEFAULT
        self.holder.raw_data = numpy_helper.from_array(values).raw_data


def weights_of(model: ModelProto) -> list[Weight]:
    """List the weights of the main graph and of all bodies inside it, in the order of the model."""
    walk = _Walk()
    walk.read(model.graph, ChainMap())
    return walk.weights()


@dataclass
class _Found:
    """The knowledge of a weight so far."""

    name: str
    holder: Holder
    readers: int = 0
    is_coefficient: bool = True
    elements: set[int] = field(default_factory=set)


_Carried: TypeAlias = frozenset[tuple[int, int]]
"""The weight of which a value consists, by its number, and the value's element type; empty for other values."""
_Names: TypeAlias = ChainMap[str, _Carried]
_NO_WEIGHT: _Carried = frozenset()


class _Walk:
    """One pass over a model's nodes, with the names that each graph sees."""

    def __init__(self) -> None:
        self.found: list[_Found] = []
        self.factors: dict[int, np.ndarray] = {}

    def weights(self) -> list[Weight]:
        return [
            Weight(
                name=each.name,
                holder=each.holder,
                readers=each.readers,
                is_coefficient=each.is_coefficient and each.readers > 0,
                element=next(iter(each.elements)) if len(each.elements) == 1 else _element(each.holder),
                factors=self.factors.get(number) if each.readers == 1 else None,
            )
            for number, each in enumerate(self.found)
        ]

    def read(self, graph: GraphProto, names: _Names) -> None:
        names |= {value.name: _NO_WEIGHT for value in graph.input}
        for tensor in graph.initializer:
            names[tensor.name] = self._held(tensor.name, tensor)
        for sparse in graph.sparse_initializer:
            names[sparse.values.name] = self._held(sparse.values.name, sparse.values)
        for node in graph.node:
            self._read_node(node, names)
        for output in graph.output:
            self._add_reader(names.get(output.name, _NO_WEIGHT), is_coefficient=False)
        self._find_factors(graph, names)

    def _held(self, name: str, holder: Holder) -> _Carried:
        self.found.append(_Found(name, holder))
        return frozenset({(len(self.found) - 1, _element(holder))})

    def _read_node(self, node: NodeProto, names: _Names) -> None:
        operator, result = qualified_name(node), _NO_WEIGHT
        if (holder := _constant(node)) is not None:
            result = self._held(node.output[0], holder)
        for place, name in enumerate(node.input):
            carried = names.get(name, _NO_WEIGHT)
            if place == 0 and operator in PASSED_ON:
                target = next((a.i for a in node.attribute if a.name == "to"), None)
                result = carried if target is None else frozenset((number, target) for number, _ in carried)
            else:
                self._add_reader(carried, is_coefficient=place in COEFFICIENTS.get(operator, ()))
        for attribute in node.attribute:
            for body in (attribute.g, *attribute.graphs):
                self.read(body, names.new_child())
        names |= dict.fromkeys(node.output, result)

    def _add_reader(self, carried: _Carried, *, is_coefficient: bool) -> None:
        for number, element in carried:
            found = self.found[number]
            found.readers += 1
            found.is_coefficient &= is_coefficient
            found.elements.add(element)

    def _find_factors(self, graph: GraphProto, names: _Names) -> None:
        """Find the products that a scaling alone reads, whose factor they will take up."""
        makers = {name: node for node in graph.node for name in node.output}
        readers = Counter(name for node in graph.node for name in (*node.input, *captured_names(node)))
        readers.update(output.name for output in graph.output)
        for node in graph.node:
            maker = makers.get(node.input[0]) if qualified_name(node) in SCALINGS else None
            place = None if maker is None else SCALED.get(qualified_name(maker))
            if maker is None or place is None or readers[node.input[0]] > 1:
                continue
            factors = self._factors(node, names)
            for number, _ in names.get(maker.input[place], _NO_WEIGHT):
                if factors is not None:
                    self.factors[number] = factors

    def _factors(self, node: NodeProto, names: _Names) -> np.ndarray | None:
        """The factor of each channel, where it is known."""
        scaling = SCALINGS[qualified_name(node)]
        numbers = [names.get(node.input[place], _NO_WEIGHT) for place in (scaling.scale, scaling.variance)]
        is_trained = any(a.name == scaling.training and a.i for a in node.attribute)
        if is_trained or not all(len(carried) == 1 for carried in numbers):
            return None
        scale, variance = (_values(self.found[number].holder) for ((number, _),) in numbers)
        epsilon = next((a.f for a in node.attribute if a.name == scaling.epsilon), scaling.default)
        with np.errstate(all="ignore"):
            factors: np.ndarray = scale / np.sqrt(variance + np.asarray(epsilon, variance.dtype))
        return factors


def _constant(node: NodeProto) -> Holder | None:
    """Return what holds the floats of a Constant; None for other nodes."""
    if node.input or node.domain not in ONNX_DOMAINS:
        return None
    for attribute in node.attribute:
        if attribute.name == "value" and attribute.HasField("t"):
            return attribute.t
        if attribute.name == "sparse_value":
            return attribute.sparse_tensor.values
        if attribute.name == "value_floats":
            return attribute
    return None


def _element(holder: Holder) -> int:
    return holder.data_type if isinstance(holder, TensorProto) else TensorProto.FLOAT


def _values(holder: Holder) -> np.ndarray:
    if isinstance(holder, AttributeProto):
        return np.array(holder.floats, np.float32)
    return InitializerPayload(holder).array()
