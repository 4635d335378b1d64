"""The form that every ONNX program has here, so that libraries differ in what they optimise and not in how they write.

    start = normal_form(model)                          a model as it was loaded
    after = normal_form(result, interface_of=start)     what a pass made of it, as it may be used: or `ValueError`

IR version 10; weights are no inputs; a Constant is an initializer; functions are inlined; what nobody computes with
(doc strings, metadata, unused domains) is gone; numbers are raw bytes; all types that ONNX infers are declared; nodes
come as the outputs need them (`node_order`).

Invariant: inputs and outputs are those of the model that the pass was given: names, types, order.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, numpy_helper
from onnx.inliner import inline_local_functions

from rlflow.onnx_io.node_proto import ONNX_DOMAINS, constant_tensor
from rlflow.passes.onnx.node_order import in_order

IR_VERSION = 10
"""The last one that all five libraries and ONNX Runtime read and write."""
_CONTRIB = "com.microsoft"
_MISPLACED = {"SimplifiedLayerNormalization"}
"""Operators of ONNX Runtime that it writes as if they were ONNX's own, which knows nothing of them."""


def normal_form(
    model: ModelProto, interface_of: ModelProto | None = None, domains: Collection[str] | None = None
) -> ModelProto:
    """Bring `model` into normal form, in place where that is possible, and return it.

    With `interface_of`, a model in normal form, inputs and outputs must be those of it; with `domains`, operators must
    be of these. Raises `ValueError`, or what onnx raises, for a model that is not valid.
    """
    if model.functions:
        model = inline_local_functions(model)
    model.ir_version = IR_VERSION
    del model.metadata_props[:]
    _plain(model.graph)
    _no_name_twice(model.graph)
    _keep_used_opsets(model, domains)
    _weights_are_no_inputs(model.graph)
    if interface_of is not None:
        _restore_interface(model.graph, interface_of.graph)
    _forget_types_of_nothing(model.graph)
    model = _verified(model)
    in_order(model.graph)
    return model


def nodes_of(graph: GraphProto) -> Iterator[NodeProto]:
    """Yield the nodes of a graph and of all graphs inside of them."""
    for node in graph.node:
        yield node
        for body in bodies_of(node):
            yield from nodes_of(body)


def operations_of(graph: GraphProto) -> Iterator[NodeProto]:
    """Yield the same nodes, but for those that only hold numbers."""
    return (node for node in nodes_of(graph) if node.op_type != "Constant")


def bodies_of(node: NodeProto) -> Iterator[GraphProto]:
    """Yield the graphs that a node holds."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def domain_of(node: NodeProto) -> str:
    """Return the domain that a node's operator belongs to, "" for ONNX's own, which has two names."""
    if node.op_type in _MISPLACED:
        return _CONTRIB
    return "" if node.domain in ONNX_DOMAINS else node.domain


def _verified(model: ModelProto) -> ModelProto:
    """Return the model with all types declared; raise what onnx raises if it is not valid."""
    for node in _misplaced(model):
        node.domain = _CONTRIB  # or nothing would be checked, as onnx gives up at operators that are not in its domain
    model = onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)
    onnx.checker.check_model(model)
    for node in _misplaced(model):
        node.domain = ""
    return model


def _misplaced(model: ModelProto) -> list[NodeProto]:
    return [node for node in nodes_of(model.graph) if node.op_type in _MISPLACED]


def _plain(graph: GraphProto) -> None:
    """Make Constants initializers, write numbers in one way and drop remarks, also in graphs inside of nodes."""
    for part in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        part.ClearField("doc_string")
        del part.metadata_props[:]
    graph.ClearField("doc_string")
    del graph.metadata_props[:]
    outputs = {value.name for value in graph.output}
    kept: list[NodeProto] = []
    for node in graph.node:
        node.ClearField("doc_string")
        del node.metadata_props[:]
        for attribute in node.attribute:
            _raw([attribute.t] if attribute.HasField("t") else attribute.tensors)
        tensor = None
        if node.op_type == "Constant" and domain_of(node) == "" and node.output[0] not in outputs:
            tensor = constant_tensor(node)
        if tensor is None:
            kept.append(node)
        else:
            graph.initializer.append(tensor)
        for body in bodies_of(node):
            _plain(body)
    _raw(graph.initializer)
    if len(kept) < len(graph.node):
        copies = [_copy(node) for node in kept]
        del graph.node[:]
        graph.node.extend(copies)


def _raw(tensors: Iterable[TensorProto]) -> None:
    """Write numbers as raw bytes: libraries write either these or lists, and passes that compare weights see it."""
    for tensor in tensors:
        if not (tensor.HasField("raw_data") or tensor.external_data or tensor.data_type == TensorProto.STRING):
            tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))


def _no_name_twice(graph: GraphProto) -> None:
    """Take the name from a node that has that of another: some passes copy nodes with it, and ONNX Runtime refuses."""
    seen = set[str]()
    for node in nodes_of(graph):
        if node.name in seen:
            node.ClearField("name")
        seen.add(node.name)


def _copy(node: NodeProto) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    return copy


def _keep_used_opsets(model: ModelProto, allowed: Collection[str] | None) -> None:
    used = {domain_of(node) for node in nodes_of(model.graph)} | {""}
    if allowed is not None and (foreign := sorted(used - set(allowed))):
        raise ValueError(f"it has operators of {', '.join(foreign)}")
    versions: dict[str, int] = {}
    for opset in model.opset_import:
        versions.setdefault("" if opset.domain in ONNX_DOMAINS else opset.domain, opset.version)
    del model.opset_import[:]
    for domain in sorted(used & {*versions, _CONTRIB}):
        model.opset_import.add(domain=domain, version=versions.get(domain, 1))


def _weights_are_no_inputs(graph: GraphProto) -> None:
    weights = {tensor.name for tensor in graph.initializer}
    inputs = [value for value in graph.input if value.name not in weights]
    if len(inputs) < len(graph.input):
        kept = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in inputs]
        del graph.input[:]
        graph.input.extend(kept)


def _restore_interface(graph: GraphProto, original: GraphProto) -> None:
    """Declare inputs and outputs as the original does; one that a pass left out as unused comes back."""
    names = {value.name for value in original.input}
    if extra := [value.name for value in graph.input if value.name not in names]:
        raise ValueError(f"it has another input, {extra[0]}")
    wanted, found = [o.name for o in original.output], [o.name for o in graph.output]
    if wanted != found:
        raise ValueError(f"its outputs are {', '.join(found)} and not {', '.join(wanted)}")
    for role in ("input", "output"):
        before = {value.name: value.type.tensor_type.elem_type for value in getattr(original, role)}
        for value in getattr(graph, role):
            if value.type.tensor_type.elem_type not in (0, before[value.name]):
                raise ValueError(f"its {role} {value.name} has another type")
        del getattr(graph, role)[:]
        getattr(graph, role).extend(getattr(original, role))


def _forget_types_of_nothing(graph: GraphProto) -> None:
    """Drop the declared types of values that no node computes any more."""
    computed = {name for node in graph.node for name in node.output if name}
    stated = {value.name for value in (*graph.input, *graph.output)}
    infos = {value.name: value for value in graph.value_info}
    kept = [
        onnx.ValueInfoProto.FromString(value.SerializeToString())
        for name, value in infos.items()
        if name in computed and name not in stated
    ]
    del graph.value_info[:]
    graph.value_info.extend(kept)
