"""The identity of an ONNX model up to names, as a hash.

A node's key is its operator and operands, and then its readers. The first alone would not tell two equal
nodes from one that is read twice, which is all the difference that the elimination of common subexpressions makes:

    Relu(x) + Relu(x), with one Relu or with two: the two have different keys

The key digests the sorted hashes of all nodes and initializers, with those of the outputs in their order.

Invariant: equal in every process, and for every order in which the nodes may be written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from hashlib import blake2b

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, numpy_helper

from rlflow.onnx_io.node_proto import captured_names
from rlflow.passes.onnx.normal_form import domain_of

_NOTHING = b"-"
_BYTES = 12


def program_key(model: ModelProto) -> str:
    """Return the key as 24 hexadecimal digits; names of inputs and outputs do not count either."""
    opsets = sorted(f"{opset.domain}:{opset.version}" for opset in model.opset_import)
    return _digest([*(opset.encode() for opset in opsets), _graph(model.graph, {})]).hex()


def _graph(graph: GraphProto, outer: Mapping[str, bytes]) -> bytes:
    values = dict(outer)
    for place, value in enumerate(graph.input):
        values[value.name] = _digest([b"input", str(place).encode(), _type(value)])
    weights = {tensor.name: _tensor(tensor) for tensor in graph.initializer}
    values |= weights
    up = [_node(node, values) for node in graph.node]
    outputs = [values.get(value.name, _NOTHING) for value in graph.output]
    return _digest([b"graph", *outputs, b"nodes", *sorted(_with_readers(graph, up, weights))])


def _node(node: NodeProto, values: dict[str, bytes]) -> bytes:
    """Hash a node by its operands, and enter its outputs among the values."""
    operands = [values.get(name, _NOTHING) if name else _NOTHING for name in node.input]
    attributes = sorted(_attribute(attribute, values) for attribute in node.attribute)
    named = b"".join(b"1" if name else b"0" for name in node.output)
    own = _digest([domain_of(node).encode(), node.op_type.encode(), *operands, b"with", *attributes, named])
    for place, name in enumerate(node.output):
        if name:
            values[name] = _digest([own, str(place).encode()])
    return own


def _with_readers(graph: GraphProto, up: list[bytes], weights: Mapping[str, bytes]) -> Iterable[bytes]:
    """Yield the hashes of nodes and initializers with those of whatever reads them, from the last node to the first."""
    readers: defaultdict[str, list[bytes]] = defaultdict(list)
    for place, value in enumerate(graph.output):
        readers[value.name].append(b"output%d" % place)
    for node, own in zip(reversed(graph.node), reversed(up), strict=True):
        read_by = [b"%d:" % place + b"".join(sorted(readers[name])) for place, name in enumerate(node.output) if name]
        whole = _digest([own, *read_by])
        for place, name in enumerate(_read(node)):
            if name:
                readers[name].append(whole + b"%d" % place)
        yield whole
    for name, own in weights.items():
        yield _digest([own, *sorted(readers[name])])


def _read(node: NodeProto) -> list[str]:
    return [*node.input, *captured_names(node)]


def _attribute(attribute: AttributeProto, values: Mapping[str, bytes]) -> bytes:
    name = attribute.name.encode()
    match attribute.type:
        case AttributeProto.GRAPH:
            return _digest([name, _graph(attribute.g, values)])
        case AttributeProto.GRAPHS:
            return _digest([name, *(_graph(graph, values) for graph in attribute.graphs)])
        case AttributeProto.TENSOR:
            return _digest([name, _tensor(attribute.t)])
    plain = AttributeProto()
    plain.CopyFrom(attribute)
    plain.ClearField("doc_string")
    return _digest([plain.SerializeToString(deterministic=True)])


def _tensor(tensor: TensorProto) -> bytes:
    if tensor.data_type == TensorProto.STRING:
        content = b"\0".join(tensor.string_data)
    elif tensor.HasField("raw_data"):
        content = tensor.raw_data
    else:
        content = numpy_helper.to_array(tensor).tobytes()
    return _digest([b"tensor", str(tensor.data_type).encode(), str(list(tensor.dims)).encode(), content])


def _type(value: ValueInfoProto) -> bytes:
    return value.type.SerializeToString(deterministic=True)


def _digest(parts: Iterable[bytes]) -> bytes:
    digest = blake2b(digest_size=_BYTES)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little"))
        digest.update(part)
    return digest.digest()
