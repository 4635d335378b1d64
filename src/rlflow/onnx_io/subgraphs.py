"""The subgraphs of If, Loop, Scan and SequenceMap, each as a model of its own, and back into the nodes that hold them.

A subgraph reads values of the graphs around it by name (it captures them). In

    Loop(n, true, x) { body(i, cond, x): y = MatMul(x, w);  z = Add(y, bias) }

with a weight w and a computed value bias of the main graph, the subgraph `body` alone becomes a model with inputs i,
cond and x as in the subgraph, then bias, and with w as an initializer. Put back, w and bias are captured again under
their names.

Invariants: inputs are the subgraph's own and then those captured; nothing is stored twice, since a constant that a
subgraph held before is captured again and a new one becomes a constant of the main graph, which several subgraphs may
read; a new name never hides one of the graphs around it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import count

import onnx
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, helper

from rlflow.errors import GraphError
from rlflow.onnx_io.external_data import copy_fields
from rlflow.onnx_io.node_proto import ONNX_DOMAINS, constant_tensor, free_names
from rlflow.onnx_io.payload import InitializerPayload
from rlflow.onnx_io.shapes.inference import declares_weights, inferred, with_types, without_large_weights
from rlflow.onnx_io.shapes.loops import carried_types, values_of

_LOGGER = logging.getLogger(__name__)
_UNUSABLE = (GraphError, LookupError, RuntimeError, ValueError, onnx.checker.ValidationError)
_SCAN_WITHOUT_BATCH_SINCE = 9

Place = tuple[int, str]
"""A subgraph of a model by the number of its node and the name of the attribute that holds it."""


@dataclass(frozen=True)
class Subgraph:
    """A subgraph as a model, of the opsets and functions of the one that it is part of.

    Its inputs are those of the subgraph and then the values that it captures, its outputs those of the subgraph.
    `node` names the node to people, even if it has no name.
    """

    place: Place
    node: str
    model: ModelProto

    @property
    def attribute(self) -> str:
        return self.place[1]


def subgraphs(model: ModelProto) -> Iterator[Subgraph]:
    """Yield the subgraphs of the main graph's nodes, in order; subgraphs inside them are subgraphs of these models.

    A subgraph that makes no valid model, because a value has no known type, is left out with a debug message. So are
    all subgraphs of files before IR version 4, which could hold no weight.
    """
    if declares_weights(model) or not any(map(_has_subgraphs, model.graph.node)):
        return
    around = _Surroundings(model)
    for number, node in enumerate(model.graph.node):
        for attribute in filter(_is_subgraph, node.attribute) if _has_subgraphs(node) else ():
            name = node.name or next(filter(None, node.output), node.op_type)
            try:
                yield Subgraph((number, attribute.name), name, around.standalone(node, attribute.g))
            except _UNUSABLE as error:
                reason = str(error).splitlines()[0]
                _LOGGER.debug("%s of node %r stays as it is: %s", attribute.name, name, reason)


def with_subgraphs(model: ModelProto, replaced: Mapping[Place, ModelProto]) -> ModelProto:
    """Return the model with some subgraphs replaced, each by a model with the inputs and outputs `subgraphs` gave it.

    If none is replaced, that is the model itself.
    """
    if not replaced:
        return model
    changed = ModelProto()
    changed.CopyFrom(model)
    constants = _Constants(changed)
    for (number, name), standalone in replaced.items():
        node = changed.graph.node[number]
        subgraph = next(attribute.g for attribute in node.attribute if attribute.name == name)
        constants.put_back(standalone.graph, subgraph)
    return changed


def size(graph: GraphProto) -> int:
    """Count the nodes of a graph and of all its subgraphs."""
    return len(graph.node) + sum(size(inner) for node in graph.node for inner in _graphs_of(node))


class _Surroundings:
    """The part of a model that the subgraphs of its nodes see: types of values, constants and symbols."""

    def __init__(self, model: ModelProto) -> None:
        self.model = model
        self.light = with_types(model)
        self.types = _types(self.light.graph)
        self.constants = _constants(model)
        # Only these symbols are kept: inference makes up others, which in another model would mean something else.
        self.symbols = {d.dim_param for value in model.graph.input for d in value.type.tensor_type.shape.dim}

    def standalone(self, node: NodeProto, subgraph: GraphProto) -> ModelProto:
        """Return a subgraph's model; `GraphError` if a type is unknown, any error of onnx if the node is malformed."""
        alone = ModelProto()
        copy_fields(self.model, alone, skipped={"graph"})
        copy_fields(subgraph, alone.graph, skipped={"input", "output", "value_info"})

        formal = _FORMAL_TYPES[node.op_type](self, node, subgraph)
        captured = list(dict.fromkeys(free_names(subgraph)))
        read = {name: self.type_of(name) for name in captured if name not in self.constants}
        for name, value_type in (*zip((value.name for value in subgraph.input), formal, strict=True), *read.items()):
            alone.graph.input.add(name=name).type.CopyFrom(_without_symbols(value_type, self.symbols))
        for name in captured:
            if name in self.constants:
                constant = alone.graph.initializer.add()
                constant.CopyFrom(self.constants[name])
                constant.name = name

        # A subgraph may declare any shape, but the values that live on are to keep what it declares.
        alone.graph.value_info.extend(map(_without_shape, subgraph.value_info))
        self._type_outputs(alone, subgraph)
        onnx.checker.check_model(without_large_weights(alone))
        return alone

    def type_of(self, name: str) -> TypeProto:
        """Return the type of a value of the main graph; `GraphError` if it is not known."""
        if name not in self.types:
            raise GraphError(f"the type of {name!r} is not known")
        return self.types[name]

    def iterated(self, loop: NodeProto, subgraph: GraphProto) -> list[TypeProto]:
        """Return the types of a Loop subgraph's inputs: iteration, condition, and carried values of fixed types."""
        counters = [
            _counter(*pair) for pair in zip(subgraph.input, (TensorProto.INT64, TensorProto.BOOL), strict=False)
        ]
        carried = carried_types(loop, self.light, inferred)
        changing = [value.name for value in list(subgraph.input)[2:] if value.name not in carried]
        if changing:
            raise GraphError(f"the shape of {changing[0]!r} may change from iteration to iteration")
        return [*counters, *carried.values()]

    def scanned(self, scan: NodeProto, subgraph: GraphProto) -> list[TypeProto]:
        """Return the types of a Scan subgraph's inputs: states, whose types no iteration may change, and slices."""
        opset = max(o.version for o in self.model.opset_import if o.domain in ONNX_DOMAINS)
        if opset < _SCAN_WITHOUT_BATCH_SINCE:
            raise GraphError(f"Scan of opset {opset} has a batch axis, which is not supported")
        attributes = {a.name: helper.get_attribute_value(a) for a in scan.attribute if a.name != "body"}
        types = [self.type_of(name) for name in scan.input]
        slices = attributes["num_scan_inputs"]
        axes = attributes.get("scan_input_axes", [0] * slices)
        sliced = [_slice(value_type, axis) for value_type, axis in zip(types[-slices:], axes, strict=True)]
        return [*types[:-slices], *sliced]

    def mapped(self, node: NodeProto, subgraph: GraphProto) -> list[TypeProto]:
        """Return the types of a SequenceMap subgraph's inputs: elements of sequences, and tensors as they are."""
        types = [self.type_of(name) for name in node.input]
        return [t.sequence_type.elem_type if t.HasField("sequence_type") else t for t in types]

    def _type_outputs(self, alone: ModelProto, subgraph: GraphProto) -> None:
        """Declare the outputs with inferred types, as a subgraph may declare anything, or else as the subgraph does."""
        for output in subgraph.output:
            alone.graph.output.add(name=output.name)
        types = _types(with_types(alone).graph)
        for place, output in enumerate(subgraph.output):
            value_type = types.get(output.name)
            known, symbols = (value_type, self.symbols) if value_type is not None else (output.type, set[str]())
            alone.graph.output[place].type.CopyFrom(_without_symbols(known, symbols))


class _Constants:
    """The constants of a model, which new subgraphs share, and the names that are taken."""

    def __init__(self, model: ModelProto) -> None:
        self.graph = model.graph
        self.old = _constants(model)
        self.new: dict[str, str] = {}
        self.taken = set(all_names(model.graph))

    def put_back(self, new: GraphProto, subgraph: GraphProto) -> None:
        """Give a subgraph the nodes of `new`, and the constants that it held before; others go to the main graph."""
        own = set(all_names(subgraph))
        captured = {name: self.old[name] for name in free_names(subgraph) if name in self.old}
        results = {output.name for output in subgraph.output}
        held = {tensor.name: _captured_as(tensor, captured, results) for tensor in new.initializer}

        # A new value may have the name of a constant that is no longer captured.
        kept = (own - set(captured)) | {name for name, known in held.items() if name == known}
        renamed = self._renamed(set(all_names(new)), kept)

        alive = {value.name for value in new.value_info} & {name for node in new.node for name in node.output}
        declared = [value for value in subgraph.value_info if value.name in alive]
        for field in ("node", "initializer", "sparse_initializer", "value_info"):
            subgraph.ClearField(field)
        for tensor in new.initializer:
            known = held[tensor.name]
            if known is None and tensor.name in kept:
                subgraph.initializer.add().CopyFrom(tensor)
            elif known is None:  # new: a constant of the main graph from now on
                renamed[tensor.name] = self._stored(tensor, renamed.get(tensor.name, tensor.name))
            elif known != tensor.name:  # ONNX wants a result to be computed in the subgraph, not captured
                subgraph.node.append(helper.make_node("Identity", [known], [tensor.name]))

        subgraph.sparse_initializer.extend(new.sparse_initializer)
        subgraph.node.extend(new.node)
        subgraph.value_info.extend(declared)
        rename_values(subgraph, renamed)
        self.taken.update(all_names(subgraph))

    def _renamed(self, used: Set[str], kept: Set[str]) -> dict[str, str]:
        """Choose new names for values of a new subgraph whose names are taken outside."""
        taken = self.taken | used
        fresh = (name for number in count() if (name := f"rlflow/body_{number}") not in taken)
        return {name: next(fresh) for name in sorted(used & self.taken - kept)}

    def _stored(self, tensor: TensorProto, name: str) -> str:
        """Store a constant in the main graph, once for equal values; return its name there."""
        digest = InitializerPayload(tensor).digest
        if digest not in self.new:
            self.new[digest] = name
            copy = self.graph.initializer.add()
            copy.CopyFrom(tensor)
            copy.name = name
        return self.new[digest]


_FORMAL_TYPES: Mapping[str, Callable[[_Surroundings, NodeProto, GraphProto], list[TypeProto]]] = {
    "If": lambda around, node, subgraph: [],
    "Loop": _Surroundings.iterated,
    "Scan": _Surroundings.scanned,
    "SequenceMap": _Surroundings.mapped,
}
"""Types of the values that these operators feed to their subgraphs."""


def _has_subgraphs(node: NodeProto) -> bool:
    return node.op_type in _FORMAL_TYPES and node.domain in ONNX_DOMAINS


def _is_subgraph(attribute: onnx.AttributeProto) -> bool:
    return attribute.type == onnx.AttributeProto.GRAPH


def _graphs_of(node: NodeProto) -> Iterator[GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def _types(graph: GraphProto) -> dict[str, TypeProto]:
    """Return the types of values by name, except tensors of unknown rank or element type."""
    types = {value.name: value.type for value in values_of(graph) if value.type.WhichOneof("value")}
    return {
        name: value_type
        for name, value_type in types.items()
        if not value_type.HasField("tensor_type") or _has_rank(value_type.tensor_type)
    }


def _has_rank(tensor_type: TypeProto.Tensor) -> bool:
    return bool(tensor_type.elem_type) and tensor_type.HasField("shape")


def _constants(model: ModelProto) -> dict[str, TensorProto]:
    """Return the constants of the main graph, by the names under which subgraphs may read them.

    These are initializers that no caller can override, the tensors of Constant nodes, and Identities of either:
    exporters give a weight that is used twice a second name.
    """
    fed = {value.name for value in model.graph.input}
    constants = {tensor.name: tensor for tensor in model.graph.initializer if tensor.name not in fed}
    for node in model.graph.node:
        if node.domain in ONNX_DOMAINS and node.op_type in ("Constant", "Identity"):
            source = node.input[0] if node.input else ""
            tensor = constants.get(source) if node.op_type == "Identity" else constant_tensor(node)
            if tensor is not None:
                constants[node.output[0]] = tensor
    return constants


def _counter(declared: ValueInfoProto, element_type: int) -> TypeProto:
    """The type of a scalar, or of a vector of one element if the subgraph declares one, as ONNX Runtime feeds it."""
    vector = len(declared.type.tensor_type.shape.dim) == 1
    return helper.make_tensor_type_proto(element_type, [1] if vector else [])


def _slice(value_type: TypeProto, axis: int) -> TypeProto:
    """Remove an axis from a type; `GraphError` if it has no such axis."""
    dimensions = list(value_type.tensor_type.shape.dim)
    if not -len(dimensions) <= axis < len(dimensions):
        raise GraphError(f"a value of {len(dimensions)} dimensions has no axis {axis} to scan")
    del dimensions[axis]
    sliced = helper.make_tensor_type_proto(value_type.tensor_type.elem_type, [])
    sliced.tensor_type.shape.dim.extend(dimensions)
    return sliced


def _without_shape(value: ValueInfoProto) -> ValueInfoProto:
    plain = ValueInfoProto()
    plain.CopyFrom(value)
    if plain.type.HasField("tensor_type"):
        plain.type.tensor_type.ClearField("shape")
    return plain


def _without_symbols(value_type: TypeProto, kept: Set[str]) -> TypeProto:
    """Remove all symbols from a type except those that are `kept`."""
    plain = TypeProto()
    plain.CopyFrom(value_type)
    for dimension in plain.tensor_type.shape.dim if plain.HasField("tensor_type") else ():
        if dimension.dim_param not in kept:
            dimension.ClearField("dim_param")
    return plain


def _captured_as(tensor: TensorProto, captured: Mapping[str, TensorProto], results: Set[str]) -> str | None:
    """Return the name of the captured constant that an initializer is; a result may be one under its own name."""
    candidates = captured if tensor.name in results else captured.keys() & {tensor.name}
    return next((name for name in candidates if _is_same(tensor, captured[name])), None)


def _is_same(tensor: TensorProto, other: TensorProto) -> bool:
    """Return True if both tensors have the same values, wherever they are stored."""
    if (tensor.data_type, list(tensor.dims)) != (other.data_type, list(other.dims)):
        return False
    return tensor == other or InitializerPayload(tensor).digest == InitializerPayload(other).digest


def all_names(graph: GraphProto) -> Iterator[str]:
    """Yield the names of all values that the graph and its subgraphs compute, hold or read."""
    for value in (*graph.input, *graph.output, *graph.initializer):
        yield value.name
    yield from (sparse.values.name for sparse in graph.sparse_initializer)
    for node in graph.node:
        yield from filter(None, (*node.input, *node.output))
        for inner in _graphs_of(node):
            yield from all_names(inner)


def rename_values(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Give values other names, in the graph and in its subgraphs, wherever they are computed, held or read."""
    for value in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        value.name = names.get(value.name, value.name)
    for sparse in graph.sparse_initializer:
        sparse.values.name = names.get(sparse.values.name, sparse.values.name)
    for node in graph.node:
        for ends in (node.input, node.output):
            ends[:] = [names.get(name, name) for name in ends]
        for inner in _graphs_of(node):
            rename_values(inner, names)
