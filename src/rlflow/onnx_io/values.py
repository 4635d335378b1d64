"""The values of a model while it is imported, and a node as the operator of its name reads it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import count

import numpy as np
import onnx

from rlflow.errors import GraphError, ModelFormatError
from rlflow.ir.node import WEIGHT, AttributeValue, Node, Ref
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.onnx_io.element_type import dtype_name
from rlflow.onnx_io.node_proto import attribute_value
from rlflow.onnx_io.payload import InitializerPayload, SparsePayload
from rlflow.onnx_io.shapes import symbolic
from rlflow.onnx_io.shapes.folding import MOST_ELEMENTS
from rlflow.ops.domain import FloatDomain
from rlflow.ops.reference import evaluate_value


class Values:
    """Nodes by their numbers, values by their names, and sizes that are made of dynamic dimensions."""

    def __init__(self) -> None:
        self.nodes: dict[int, Node] = {}
        self._numbers = count()
        self.by_name: dict[str, Ref] = {}
        self.dynamic_sizes: dict[Ref, np.ndarray] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.by_name

    def __getitem__(self, name: str) -> Ref:
        return self.by_name[name]

    def add(self, node: Node) -> int:
        """Number the node, and find its results under their names from now on."""
        _check_names(node)
        identifier = next(self._numbers)
        self.nodes[identifier] = node
        for index, name in enumerate(node.names):
            if name:
                self.by_name[name] = Ref(identifier, index)
        return identifier

    def leave_out(self, node: Node) -> None:
        """Find the operand of a node that returns it as it is under the name of its result, too.

        It takes a number all the same: with pinned sizes it may be a constant, and nodes have the numbers that they
        have without pins.
        """
        _check_names(node)
        next(self._numbers)
        (operand,) = node.inputs
        assert operand is not None
        self.by_name[node.names[0]] = operand

    def operands(self, proto: onnx.NodeProto) -> list[Ref | None]:
        """Return the values that a node reads, None for operands left out; `ModelFormatError` for one not computed."""
        return [self.operand(name, proto) for name in proto.input]

    def operand(self, name: str, reader: onnx.NodeProto) -> Ref | None:
        if not name:
            return None
        if name not in self.by_name:
            raise ModelFormatError(
                f"node {reader.name or reader.op_type!r} reads {name!r}, which no earlier node computes"
            )
        return self.by_name[name]

    def type_of(self, ref: Ref | None) -> TensorType | None:
        return None if ref is None else self.nodes[ref.node].types[ref.index]

    def constant(self, ref: Ref | None) -> np.ndarray | None:
        """The values of a weight, None for anything else."""
        payload = None if ref is None else self.nodes[ref.node].payload
        is_weight = ref is not None and self.nodes[ref.node].op == WEIGHT
        return payload.array() if is_weight and isinstance(payload, InitializerPayload | SparsePayload) else None

    def known(self, ref: Ref | None) -> np.ndarray | None:
        """The values of a weight, or of what follows from weights alone; None for anything else."""
        if ref is None or not self.nodes[ref.node].constant:
            return None
        try:
            return np.asarray(evaluate_value(self.nodes, ref, {}, FloatDomain()))
        except GraphError:
            return None

    def few_numbers(self, ref: Ref | None) -> np.ndarray | None:
        """The values of a weight that is small."""
        tensor_type = self.type_of(ref)
        if tensor_type is None or not tensor_type.is_static or tensor_type.elements > MOST_ELEMENTS:
            return None
        return self.constant(ref)

    def sizes(self, ref: Ref | None) -> np.ndarray | None:
        """The same, and of sizes that are known only when the model runs, what is known of them."""
        return self.dynamic_sizes[ref] if ref in self.dynamic_sizes else self.few_numbers(ref)


def _check_names(node: Node) -> None:
    if not all(isinstance(name, str) for name in (node.label, *node.names)):
        raise ModelFormatError(f"a name beside {node.op!r} is not UTF-8")  # protobuf hands such names out as bytes


@dataclass(frozen=True)
class OperatorNode:
    """A node as `ops/onnx_form.py` asks about it."""

    proto: onnx.NodeProto
    opset: int
    refs: Sequence[Ref | None]
    values: Values

    @cached_property
    def attributes(self) -> Mapping[str, AttributeValue | None]:
        return {a.name: attribute_value(a) for a in self.proto.attribute}

    @property
    def results(self) -> int:
        return len(self.proto.output)

    def is_given(self, place: int) -> bool:
        return self._ref(place) is not None

    def type_of(self, place: int) -> TensorType | None:
        return self.values.type_of(self._ref(place))

    def constant(self, place: int) -> np.ndarray | None:
        return self.values.constant(self._ref(place))

    def dynamic_shape(self, place: int, shape: Sequence[Dimension]) -> tuple[int, ...] | None:
        ref = self._ref(place)
        return symbolic.target(self.values.dynamic_sizes[ref], shape) if ref in self.values.dynamic_sizes else None

    def element_type(self, number: int) -> str:
        return dtype_name(number)

    def _ref(self, place: int) -> Ref | None:
        return self.refs[place] if place < len(self.refs) else None
