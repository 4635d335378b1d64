"""ONNX model -> graph. Nothing is lost: what is not understood is carried verbatim.

Nodes are read in the model's order. Each becomes one of four things, tried in this order:

* a weight, where its output is known already: a Constant, or sizes that follow from known shapes;
* a second name of its operand, where it is a Cast to the type that this has;
* an operator in its canonical form, which the operator itself makes of it (`ops/onnx_form.py`);
* an opaque node, which holds the node's own text.

The invariant: the graph computes what the model computes, and exports to it again (`onnx_io/exporter.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

from rlflow.errors import ModelFormatError, TypeInferenceError
from rlflow.ir.graph import Graph, Header, make_graph
from rlflow.ir.node import INPUT, WEIGHT, AttributeValue, Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.onnx_io.element_type import dtype_name
from rlflow.onnx_io.interface import interface_inputs, without_computation
from rlflow.onnx_io.model_file import brief, load_model, require_valid
from rlflow.onnx_io.node_proto import (
    ONNX_DOMAINS,
    captured_names,
    constant_tensor,
    qualified_name,
    remarks_of,
    sparse_constant,
)
from rlflow.onnx_io.payload import FilledPayload, InitializerPayload, OpaquePayload, SparsePayload
from rlflow.onnx_io.shapes import symbolic
from rlflow.onnx_io.shapes.folding import MOST_CHOSEN, by_reference, chooses, computed, read_shape
from rlflow.onnx_io.shapes.inference import (
    declares_weights,
    infer_node_types,
    infer_types,
    is_small,
    pin_dimensions,
)
from rlflow.onnx_io.values import OperatorNode, Values
from rlflow.ops import registry
from rlflow.ops.algebra import Algebra
from rlflow.ops.schema import Operator
from rlflow.ops.working_set import working_set_mb

_MOST_FILLED = 2**28
"""Elements: a constant is evaluated when an expression of it is exported, which must not fill the memory."""
_CONVERTING = registry.having(lambda traits: traits.converts)
_ZERO = numpy_helper.from_array(np.zeros(1, np.float32))
_LARGEST_DIMENSION = 2**63 - 1


def from_onnx(source: str | Path | onnx.ModelProto, dimensions: Mapping[str, int] | None = None) -> Graph:
    """Return the graph of a model. Weights are referenced, those in files stay there until they are needed.

    Symbolic dimensions named in `dimensions` are pinned: the graph, and what is exported of it, is for these sizes
    alone. Its nodes have the numbers that they have in the graph without pins.

    Raises `InputError` if the file cannot be read and `ModelFormatError` if it is not a valid model.
    """
    if isinstance(source, onnx.ModelProto):
        require_valid(source)
        return graph_of(source, dimensions)
    return graph_of(load_model(source), dimensions, where=str(source))


def graph_of(model: onnx.ModelProto, dimensions: Mapping[str, int] | None = None, where: str = "the model") -> Graph:
    """Do what `from_onnx` does with a model that has been checked already; what is wrong all the same is found here."""
    try:
        return _Importer(model, dimensions or {}).graph()
    except (ModelFormatError, UnicodeDecodeError) as error:
        raise ModelFormatError(f"{where} is not a valid ONNX model: {brief(error)}") from None


class _Importer:
    """The state of one import."""

    def __init__(self, model: onnx.ModelProto, dimensions: Mapping[str, int]) -> None:
        self.model = model
        opsets = {o.domain: o.version for o in model.opset_import}
        self.opset = next((opsets[d] for d in ONNX_DOMAINS if d in opsets), 0)
        own = {f.domain for f in model.functions}
        domains = {d: version for d, version in opsets.items() if d not in ONNX_DOMAINS and d not in own}
        interface = without_computation(model)
        pin_dimensions(interface.graph, dimensions)
        self.header = Header(self.opset, interface, domains)
        self.functions = {(f.domain, f.name) for f in model.functions}
        self.values = Values()
        self.known_types = infer_types(model, dimensions)

    def graph(self) -> Graph:
        proto = self.model.graph
        defaults = {} if declares_weights(self.model) else {t.name: t for t in proto.initializer}
        inputs = [self._add_input(i, defaults.get(i.name)) for i in interface_inputs(self.model)]
        self._add_weights(proto)
        for node in proto.node:
            self._add_node(node)
        try:
            outputs = [self.values[o.name] for o in proto.output]
        except KeyError as error:
            raise ModelFormatError(f"its output {error} is computed by no node") from None
        graph = make_graph(self.values.nodes, inputs, outputs, [o.name for o in proto.output], self.header)
        return replace(graph, header=replace(self.header, working_set_mb=working_set_mb(graph)))

    def _add_input(self, value: onnx.ValueInfoProto, default: onnx.TensorProto | None) -> int:
        """An input with a default may be given another value when the model runs: it is no weight."""
        attributes: dict[str, AttributeValue] = {}
        if default is not None:
            attributes["default"] = InitializerPayload(default).digest
        return self.values.add(Node(INPUT, (), attributes, (self.known_types[value.name],), (value.name,)))

    def _add_weights(self, proto: onnx.GraphProto) -> None:
        for tensor in proto.initializer:
            if tensor.name not in self.values:
                self._add_weight(tensor)
        for sparse in proto.sparse_initializer:
            if sparse.values.name not in self.values:
                self._add_sparse(sparse, sparse.values.name)

    def _add_weight(self, tensor: onnx.TensorProto) -> None:
        tensor_type = TensorType(dtype_name(tensor.data_type), tuple(int(d) for d in tensor.dims))
        self.values.add(Node(WEIGHT, (), {}, (tensor_type,), (tensor.name,), True, InitializerPayload(tensor)))

    def _add_sparse(self, sparse: onnx.SparseTensorProto, name: str) -> None:
        tensor_type = TensorType(dtype_name(sparse.values.data_type), tuple(int(d) for d in sparse.dims))
        self.values.add(Node(WEIGHT, (), {}, (tensor_type,), (name,), True, SparsePayload(sparse)))

    def _add_node(self, proto: onnx.NodeProto) -> None:
        sparse = sparse_constant(proto) if proto.op_type == "Constant" and self._is_standard(proto) else None
        if sparse is not None and prod(sparse.dims) <= _MOST_FILLED:
            self._add_sparse(sparse, proto.output[0])
            return
        tensor = self._known_tensor(proto)
        if tensor is not None:
            self._add_weight(tensor)
            return
        filled = self._filled(proto)
        if filled is not None:
            self.values.add(filled)
            return

        node = None if (proto.domain, proto.op_type) in self.functions else self._understood(proto)
        if node is not None and self._changes_nothing(node):
            self.values.leave_out(node)
            return
        sizes = self._dynamic_sizes(proto, node)
        if sizes is not None and sizes.dtype != object:  # all of them are numbers after all
            self._add_weight(numpy_helper.from_array(sizes, proto.output[0]))
            return
        identifier = self.values.add(node if node is not None else self._opaque(proto))
        if sizes is not None:
            self.values.dynamic_sizes[Ref(identifier)] = sizes

    def _known_tensor(self, proto: onnx.NodeProto) -> onnx.TensorProto | None:
        """Return the node's output where the model tells it: the value of a Constant, and sizes of known shapes."""
        if proto.op_type == "Constant" and proto.domain in ONNX_DOMAINS:
            tensor = constant_tensor(proto)
            if tensor is not None:
                return tensor
        found = self._known_sizes(proto)
        found = self._chosen(proto) if found is None else found
        return None if found is None else numpy_helper.from_array(found, proto.output[0])

    def _known_sizes(self, proto: onnx.NodeProto) -> np.ndarray | None:
        """Return the node's output, where it is whole numbers that follow from known shapes."""
        if not self._is_standard(proto):
            return None
        refs = {name: ref for name in proto.input if (ref := self.values.operand(name, proto)) is not None}
        if proto.op_type == "Shape":
            return read_shape(proto, self.values.type_of(next(iter(refs.values()), None)))
        operands = {name: array for name, ref in refs.items() if (array := self.values.few_numbers(ref)) is not None}
        return computed(proto, operands, self.opset) if refs and len(operands) == len(refs) else None

    def _chosen(self, proto: onnx.NodeProto) -> np.ndarray | None:
        """Return the node's output, where it is chosen from constants, and neither it nor they are large."""
        if not self._is_standard(proto) or not chooses(proto):
            return None
        refs = {name: self.values.operand(name, proto) for name in proto.input if name}
        if not refs or not all(ref is not None and self.values.nodes[ref.node].constant for ref in refs.values()):
            return None
        types = (*map(self.values.type_of, refs.values()), *self._opaque_types(proto))
        if not all(t is not None and t.is_static and t.elements <= MOST_CHOSEN for t in types):
            return None
        operands = {name: array for name, ref in refs.items() if (array := self.values.known(ref)) is not None}
        return by_reference(proto, operands, self.opset) if len(operands) == len(refs) else None

    def _filled(self, proto: onnx.NodeProto) -> Node | None:
        """Return a constant of one number, None where its shape is not known or it would fill the memory."""
        if proto.op_type != "ConstantOfShape" or not self._is_standard(proto):
            return None
        shape = self.values.constant(self.values.operand(proto.input[0], proto))
        value = next((a.t for a in proto.attribute if a.name == "value"), _ZERO)
        if shape is None or min(shape, default=0) < 0 or prod(map(int, shape)) > _MOST_FILLED or prod(value.dims) != 1:
            return None

        payload = FilledPayload(value, tuple(int(d) for d in shape.reshape(-1)))
        tensor_type = TensorType(dtype_name(value.data_type), payload.shape)
        return Node(WEIGHT, (), {}, (tensor_type,), tuple(proto.output), True, payload)

    def _dynamic_sizes(self, proto: onnx.NodeProto, node: Node | None) -> np.ndarray | None:
        """Return the node's output, as far as it is made of the dimensions of other values."""
        if not self._is_standard(proto) or self.opset < symbolic.SINCE:
            return None
        refs = self.values.operands(proto) if node is None else list(node.inputs)
        if proto.op_type == "Shape":
            return symbolic.of_shape(proto, self.values.type_of(next(iter(refs), None)))
        if all(ref not in self.values.dynamic_sizes for ref in refs):
            return None

        operands = [self.values.sizes(ref) for ref in refs]
        known = [array for array in operands if array is not None]
        tensor_type = self.values.type_of(refs[-1]) if node is None else node.types[0]
        if tensor_type is None or len(known) < len(operands):
            return None
        return symbolic.computed(proto, node, tensor_type.dtype, known)

    def _changes_nothing(self, node: Node) -> bool:
        """Return True for a cast to the type that a value has: exporters write many, and ONNX Runtime drops them."""
        before = self.values.type_of(node.inputs[0]) if node.op in _CONVERTING else None
        return before is not None and node.types[0] is not None and before.dtype == node.types[0].dtype

    def _is_standard(self, proto: onnx.NodeProto) -> bool:
        """Return True for a node whose operator ONNX itself defines."""
        return proto.domain in ONNX_DOMAINS and (proto.domain, proto.op_type) not in self.functions

    def _understood(self, proto: onnx.NodeProto) -> Node | None:
        """Return the node in canonical form; None where operator, opset, types or parameters are not understood."""
        operator = registry.OPERATORS.get(qualified_name(proto))
        if operator is None or not self._is_offered(operator):
            return None
        operands = self.values.operands(proto)
        data = operands[: operator.onnx.data_operands(len(operands), self.opset)]
        while data and data[-1] is None:
            data.pop()
        try:
            attributes = operator.onnx.read(OperatorNode(proto, self.opset, operands, self.values), operator.defaults)
            inferred = registry.infer(operator.name, attributes, [self.values.type_of(ref) for ref in data])
        except (TypeInferenceError, KeyError):  # KeyError: an attribute that is not written and has no default
            return None

        outputs = list(proto.output)
        while len(outputs) > len(inferred) and not outputs[-1]:
            outputs.pop()
        if len(outputs) != len(inferred) or not all(map(_can_be_written, inferred)):
            return None
        is_copy = operator.algebra is Algebra.NOTHING
        exact = not operator.traits.inexact and (is_copy or not any(map(_is_half, inferred)))
        constants = (self.values.nodes[ref.node].constant for ref in data if ref is not None)
        return Node(
            operator.name,
            tuple(data),
            attributes,
            types=tuple(_merged(t, self.known_types.get(name)) for t, name in zip(inferred, outputs, strict=True)),
            names=tuple(outputs),
            constant=exact and registry.is_constant(operator.name, constants),
            label=proto.name,
            remarks=remarks_of(proto),
        )

    def _is_offered(self, operator: Operator) -> bool:
        """Return True if the model's opset has the operator, or an older one that differs on some axes alone."""
        if self.opset < operator.onnx.flattening_before:
            return True
        return self.header.offers(registry.versions([operator.name]))

    def _opaque(self, proto: onnx.NodeProto) -> Node:
        """Return a node that carries the model's own text verbatim."""
        captures = tuple(n for n in dict.fromkeys(captured_names(proto)) if n in self.values)
        return Node(
            op=qualified_name(proto),
            inputs=(*self.values.operands(proto), *map(self.values.__getitem__, captures)),
            attributes={},
            types=self._opaque_types(proto),
            names=tuple(proto.output),
            payload=OpaquePayload(proto, captures),
            label=proto.name,
        )

    def _opaque_types(self, proto: onnx.NodeProto) -> tuple[TensorType | None, ...]:
        """Infer the types of an opaque node's outputs as ONNX does; where a size stays unknown, from the operands."""
        known = tuple(self.known_types.get(name) for name in proto.output)
        if all(tensor_type is None or tensor_type.is_static for tensor_type in known) and any(known):
            return known
        refs = {name: self.values[name] for name in proto.input if name}
        types = {name: found for name, ref in refs.items() if (found := self.values.type_of(ref)) is not None}
        if len(types) < len(refs):
            return known

        payloads = {name: self.values.nodes[ref.node].payload for name, ref in refs.items()}
        constants = {
            name: payload.proto
            for name, payload in payloads.items()
            if isinstance(payload, InitializerPayload) and is_small(payload.proto)
        }
        inferred = infer_node_types(proto, self.model, types, constants)
        merged = [_merged(inferred.get(name), told) for name, told in zip(proto.output, known, strict=True)]
        return (_merged(self._type_by_sizes(proto), merged[0]), *merged[1:])

    def _type_by_sizes(self, proto: onnx.NodeProto) -> TensorType | None:
        """Infer the type of the first output from dynamic sizes among the operands."""
        refs = self.values.operands(proto)
        operand = self.values.type_of(next(iter(refs), None))
        if operand is None or not self._is_standard(proto) or all(r not in self.values.dynamic_sizes for r in refs):
            return None
        return symbolic.typed(proto, operand, [self.values.sizes(ref) for ref in refs])


def _merged(one: TensorType | None, other: TensorType | None) -> TensorType | None:
    """Merge two inferences of a value's type: a number is preferred to a symbol, and a symbol to nothing."""
    if one is None or other is None or one.rank != other.rank:
        return one if other is None or (one is not None and one.shape is not None) else other
    if one.shape is None or other.shape is None:
        return one
    pairs = zip(one.shape, other.shape, strict=True)
    return TensorType(one.dtype, tuple(b if a is None or isinstance(b, int) else a for a, b in pairs))


def _is_half(tensor_type: TensorType) -> bool:
    """Return True for half precision, which is not computed here: only the runtime knows where it rounds."""
    return tensor_type.dtype in ("float16", "bfloat16")


def _can_be_written(tensor_type: TensorType) -> bool:
    """Return True if ONNX's 64 bits hold all dimensions; sizes that a model merely declares may multiply to more."""
    return all(d <= _LARGEST_DIMENSION for d in tensor_type.shape or () if isinstance(d, int))
