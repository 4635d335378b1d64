"""Graph -> ONNX model, with the interface of the model that the graph came from.

Constant expressions are evaluated here, once. Untouched nodes keep their names; a rewritten value that an
output or a subgraph knows by name is given that name again. The declared types of values that live on stay.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import numpy as np
import onnx
from google.protobuf.message import EncodeError
from onnx import helper, numpy_helper

from rlflow.errors import GraphError
from rlflow.ir.graph import Graph
from rlflow.ir.node import WEIGHT, AttributeValue, Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.onnx_io.element_type import element_type, from_type_proto
from rlflow.onnx_io.external_data import placement, read_in, tensors_in
from rlflow.onnx_io.payload import FilledPayload, InitializerPayload, OpaquePayload, SparsePayload
from rlflow.onnx_io.shapes.inference import declares_weights, without_large_weights
from rlflow.ops.domain import FloatDomain
from rlflow.ops.onnx_form import Parameter
from rlflow.ops.reference import evaluate_value
from rlflow.ops.registry import OPERATORS

_INLINE_ELEMENTS = 1024
"""Of one number repeated: more are made when the model runs, as they were in the model that was imported."""
_SHAPE = Parameter("shape", 0, since=9)


def to_onnx(graph: Graph) -> onnx.ModelProto:
    """A model of the same inputs, outputs, opsets, functions and metadata as the imported one.

    It is self-contained, but refers to weights in files by absolute path where these do not fit into one message.
    `GraphError` if a constant expression cannot be evaluated.
    """
    return _Exporter(graph).model()


def check_model(model: onnx.ModelProto) -> None:
    """`GraphError` with the checker's reason if the model is not valid."""
    try:
        onnx.checker.check_model(without_large_weights(model))
    except (onnx.checker.ValidationError, EncodeError, ValueError) as error:
        raise GraphError(f"the exported model is not valid ONNX: {str(error).splitlines()[0]}") from None


class _Exporter:
    """The state of one export: the name of each value, and what has been emitted."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.proto = onnx.ModelProto()
        self.proto.CopyFrom(graph.header.proto)  # type: ignore[arg-type]
        self.body = self.proto.graph
        self.names: dict[Ref, str] = {}
        self.bound: dict[str, Ref] = {}
        self.inner = set(names_in_subgraphs(graph))
        self.reserved = self.inner | set(_reserved_names(graph, self.body))
        self.taken: set[str] = {i.name for i in (*self.body.input, *self.body.output)}
        self.parameters: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self.folded: dict[Ref, np.ndarray] = {}
        self.labels: set[str] = set()
        self.fresh_count = 0
        self.place = placement(_stored_tensors(graph))

    def model(self) -> onnx.ModelProto:
        graph = self.graph
        for identifier in graph.inputs:
            self._bind(Ref(identifier), graph.nodes[identifier].names[0])
        for ref, name in zip(graph.outputs, graph.output_names, strict=True):
            if ref not in self.names:
                self.names[ref] = name
        for identifier in graph.order:
            self._emit(identifier)
        for ref, name in zip(graph.outputs, graph.output_names, strict=True):
            self._alias(ref, name)
        declared = [value for value in self.body.value_info if self._is_declared_rightly(value)]
        del self.body.value_info[:]
        self.body.value_info.extend(declared)
        return self.proto

    def _is_declared_rightly(self, value: onnx.ValueInfoProto) -> bool:
        """Return True if the model has a value of this name, and nothing is known of it that contradicts its type."""
        if value.name not in self.bound:
            return False
        known, declared = self.graph.type_of(self.bound[value.name]), from_type_proto(value.type)
        return known is None or (declared is not None and _admits(declared, known))

    def _bind(self, ref: Ref, name: str) -> None:
        """From here on the value is computed and can be read under this name."""
        self.names.setdefault(ref, name)
        self.bound[name] = ref
        self.taken.add(name)

    def _alias(self, ref: Ref, name: str) -> None:
        """Make sure that the value can be read under this name."""
        present = self._name(ref)
        if name not in self.bound:
            self.body.node.append(helper.make_node("Identity", [present], [name], name=self._label(name)))
            self._bind(ref, name)
        elif self.bound[name] != ref:
            raise GraphError(f"two values want the name {name!r}, by which a subgraph or the caller knows one of them")

    def _name(self, ref: Ref) -> str:
        name = self.names.get(ref, "")
        if self.bound.get(name) == ref:
            return name
        node = self.graph.nodes[ref.node]
        if not node.constant:
            raise GraphError(f"value {ref} ({node.op}) is read before it is computed")
        self._emit_constant(ref, node, name or self._claim(node.names[ref.index], "weight"))
        return self.names[ref]

    def _claim(self, hint: str, purpose: str) -> str:
        free = hint and hint not in self.taken and hint not in self.inner
        name = hint if free else self._fresh(purpose)
        self.taken.add(name)
        return name

    def _fresh(self, purpose: str) -> str:
        while True:
            name = f"rlflow/{purpose}_{self.fresh_count}"
            self.fresh_count += 1
            if name not in self.taken and name not in self.reserved:
                return name

    def _emit_constant(self, ref: Ref, node: Node, name: str) -> None:
        self._bind(ref, name)
        if node.op == WEIGHT and isinstance(node.payload, SparsePayload):
            sparse = self.body.sparse_initializer.add()
            sparse.CopyFrom(node.payload.proto)
            sparse.values.name = name
        elif node.op == WEIGHT and isinstance(node.payload, InitializerPayload):
            self._add_weight(node.payload.proto, name)
        elif isinstance(node.payload, FilledPayload) and prod(node.payload.shape) > _INLINE_ELEMENTS:
            shape = self._parameter(node.payload.shape, _SHAPE, None)
            value = node.payload.value
            self.body.node.append(
                helper.make_node("ConstantOfShape", [shape], [name], name=self._label(name), value=value)
            )
        else:
            value = evaluate_value(self.graph.nodes, ref, self.folded, FloatDomain())
            self._add_weight(numpy_helper.from_array(np.asarray(value)), name)

    def _add_weight(self, tensor: onnx.TensorProto, name: str) -> None:
        copy = self.body.initializer.add()
        copy.CopyFrom(tensor)
        self.place(copy)
        copy.name = name
        if declares_weights(self.proto):
            self.body.input.append(helper.make_tensor_value_info(name, copy.data_type, list(copy.dims)))

    def _emit(self, identifier: int) -> None:
        node = self.graph.nodes[identifier]
        if isinstance(node.payload, OpaquePayload):
            self._emit_opaque(identifier, node, node.payload)
            return
        operands = ["" if r is None else self._name(r) for r in node.inputs]
        outputs = self._output_names(identifier, node)
        operator, opset = OPERATORS[node.op], self.graph.header.opset
        data = next((self.graph.type_of(r) for r in node.inputs if r is not None), None)
        attributes, parameters = operator.onnx.write(node.attributes, opset, data)
        for parameter, value in parameters:
            operands += [""] * (parameter.operand - len(operands))
            operands.append(self._parameter(value, parameter, data))
        if operator.onnx.element_type:
            attributes[operator.onnx.element_type] = element_type(str(attributes[operator.onnx.element_type]))

        label = self._label(node.label or outputs[0])
        proto = helper.make_node(operator.op_type, operands, outputs, name=label, domain=operator.domain or None)
        proto.attribute.extend(_attribute(name, value) for name, value in sorted(attributes.items()))
        if isinstance(node.remarks, onnx.NodeProto):
            proto.MergeFrom(node.remarks)
        self.body.node.append(proto)

    def _emit_opaque(self, identifier: int, node: Node, payload: OpaquePayload) -> None:
        explicit = len(node.inputs) - len(payload.captures)
        for name, ref in zip(payload.captures, node.inputs[explicit:], strict=True):
            if ref is not None:
                self._alias(ref, name)
        copy = self.body.node.add()
        copy.CopyFrom(payload.proto)
        for tensor in tensors_in(copy):
            read_in(tensor)
        copy.name = self._label(node.label)
        del copy.input[:], copy.output[:]
        copy.input.extend("" if r is None else self._name(r) for r in node.inputs[:explicit])
        copy.output.extend(self._output_names(identifier, node))

    def _output_names(self, identifier: int, node: Node) -> list[str]:
        names = []
        for index, hint in enumerate(node.names):
            ref = Ref(identifier, index)
            if node.is_opaque and not hint and ref not in self.names:
                names.append("")
                continue
            names.append(self.names.get(ref) or self._claim(hint, node.op.lower()))
            self._bind(ref, names[-1])
        return names

    def _label(self, wanted: str) -> str:
        """A node's name; ONNX Runtime refuses a model in which two nodes have the same."""
        label = wanted
        while label in self.labels:
            label = f"{wanted}_{len(self.labels)}"
        if label:
            self.labels.add(label)
        return label

    def _parameter(self, value: AttributeValue, parameter: Parameter, data: TensorType | None) -> str:
        dtype = parameter.dtype_beside(data)
        array = np.asarray(value, dtype=dtype)
        key = (dtype, array.shape, array.tobytes())
        if key not in self.parameters:
            self.parameters[key] = name = self._fresh(parameter.name)
            self._add_weight(numpy_helper.from_array(array), name)
        return self.parameters[key]


def _attribute(name: str, value: AttributeValue) -> onnx.AttributeProto:
    if value == ():
        return onnx.AttributeProto(name=name, type=onnx.AttributeProto.INTS)
    return helper.make_attribute(name, value)


def _admits(declared: TensorType, known: TensorType) -> bool:
    """Return True if a value of a known type has no other type than the declared one, as far as is known."""
    if declared.dtype != known.dtype or declared.shape is None or known.shape is None:
        return declared.dtype == known.dtype
    sizes = zip(declared.shape, known.shape, strict=False)
    return declared.rank == known.rank and all(k in (d, None) for d, k in sizes if isinstance(d, int))


def _stored_tensors(graph: Graph) -> Iterator[onnx.TensorProto]:
    for node in graph.nodes.values():
        if isinstance(node.payload, InitializerPayload):
            yield node.payload.proto


def _reserved_names(graph: Graph, body: onnx.GraphProto) -> Iterator[str]:
    """Names that the model uses already, or did."""
    yield from (i.name for i in (*body.input, *body.output, *body.value_info))
    for node in graph.nodes.values():
        yield from node.names
        if isinstance(node.payload, OpaquePayload):
            yield from node.payload.captures


def names_in_subgraphs(graph: Graph) -> Iterator[str]:
    """Names that no outer value may take, as the order of nodes decides whether the subgraph would see it."""
    for node in graph.nodes.values():
        if isinstance(node.payload, OpaquePayload):
            yield from _names_inside(node.payload.proto)


def _names_inside(node: onnx.NodeProto) -> Iterator[str]:
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            yield from (t.name for t in graph.initializer)
            yield from (t.values.name for t in graph.sparse_initializer)
            yield from (i.name for i in graph.input)
            for inner in graph.node:
                yield from inner.output
                yield from _names_inside(inner)
