"""A few nodes of a graph as a graph of their own: what is timed, and under which name its price is kept.

`describe` gives nodes a signature, by which a price is found again, and `extract` makes the graph that is timed.
The MatMuls of all layers of a model have one signature, for as long as their shapes are equal, and are timed once.

Of nodes that compute the same, the first stands for all.

The invariant: fragments of one signature do the same work. Values of weights, names, ids and the order of commutative
operands are no part of it; small constants are, because they may steer what ONNX Runtime fuses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from rlflow.cost.integer_kernels import DEQUANTISING
from rlflow.cost.regions import first_value, readers, stand_ins
from rlflow.ir.graph import Graph, make_graph
from rlflow.ir.node import INPUT, WEIGHT, Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.ops.domain import FloatDomain
from rlflow.ops.reference import evaluate_value
from rlflow.ops.registry import OPERATORS

_LITERAL_ELEMENTS = 8  # constants this small steer fusions (an exponent, an epsilon); larger ones are just weights


@dataclass(frozen=True)
class ArbitraryWeight:
    """A weight of the right type with arbitrary values, which are the same for the same seed."""

    seed: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def digest(self) -> str:
        return f"{self.seed}:{self.dtype}:{self.shape}"

    def array(self) -> np.ndarray:
        rng = np.random.default_rng(int(blake2b(self.digest.encode(), digest_size=4).hexdigest(), 16))
        return (0.05 * rng.standard_normal(self.shape)).astype(self.dtype)


@dataclass(frozen=True, eq=False)
class KnownWeight:
    """A weight whose values count."""

    values: np.ndarray

    @property
    def digest(self) -> str:
        return f"{self.values.dtype}{self.values.shape}{self.values.tobytes().hex()}"

    def array(self) -> np.ndarray:
        return self.values


@dataclass(frozen=True)
class Fragment:
    """`signature` is equal for fragments that do the same work: weights' values do not count, small constants' do."""

    signature: str
    description: str
    nodes: tuple[int, ...]


def describe(graph: Graph, identifiers: Sequence[int]) -> Fragment:
    """Describe nodes by their operators, attributes, types and wiring, without names or ids.

    The order of a commutative operator's operands does not count, as it does not for the work: otherwise every
    reordering of a sum would be timed again, and a search would collect the luckiest timings.
    """
    inside = set(identifiers)
    first = stand_ins(graph, identifiers)
    run = [i for i in identifiers if first[i] == i]
    read = (_stand_in(graph, ref, first) for i in run for ref in graph.nodes[i].inputs)
    reads = Counter(ref for ref in read if ref and ref.node not in inside)
    digests: dict[int, str] = {}
    for identifier in run:
        node = graph.nodes[identifier]
        operands = [_operand(graph, _stand_in(graph, ref, first), digests, reads) for ref in node.inputs]
        operator = OPERATORS.get(node.op)
        if operator is not None and operator.commutative and not node.is_opaque:
            operands.sort()
        used = [i for i in range(len(node.types)) if is_result(graph, Ref(identifier, i), inside)]
        payload = node.payload.digest if node.payload else ""
        content = (node.op, sorted(node.attributes.items()), operands, [str(t) for t in node.types], used, payload)
        digests[identifier] = _digest(repr(content))
    signature = _digest(repr((graph.header.opset, sorted(digests.values()))))
    return Fragment(signature, _in_words(graph, identifiers), tuple(identifiers))


def _stand_in(graph: Graph, ref: Ref | None, first: Mapping[int, int]) -> Ref | None:
    """Return the value that stands for one: inside by the first of the nodes that compute it, outside by any one."""
    return first_value(graph, ref) if ref is None or ref.node not in first else Ref(first[ref.node], ref.index)


def _operand(graph: Graph, ref: Ref | None, digests: Mapping[int, str], reads: Mapping[Ref, int]) -> str:
    """Describe a value from inside by what computes it, one from outside by its type and by how often it is read."""
    if ref is None:
        return "-"
    if ref.node in digests:
        return f"{digests[ref.node]}.{ref.index}"
    return f"{from_outside(graph, ref)} x{reads[ref]}"


def _digest(text: str) -> str:
    return blake2b(text.encode(), digest_size=10).hexdigest()


def _in_words(graph: Graph, identifiers: Sequence[int]) -> str:
    return ", ".join(f"{graph.nodes[i].op} {graph.nodes[i].types[0]}" for i in identifiers)


def from_outside(graph: Graph, ref: Ref) -> str:
    """Describe an operand from outside: a value or a weight by its type, a small constant by its values as well."""
    node, tensor_type = graph.nodes[ref.node], graph.type_of(ref)
    if not node.constant:
        return f"in {tensor_type}"
    if is_literal(tensor_type):
        return f"literal {tensor_type} {literal(graph, ref)}"
    return f"weight {tensor_type}"


def is_literal(tensor_type: TensorType | None) -> bool:
    """Return True if a constant of this type is so small that its values count."""
    return tensor_type is not None and tensor_type.is_static and tensor_type.elements <= _LITERAL_ELEMENTS


def literal(graph: Graph, ref: Ref) -> list[float]:
    """Return the values of a small constant."""
    value = evaluate_value(graph.nodes, ref, {}, FloatDomain())
    return [float(v) for v in np.asarray(value).reshape(-1)]


def leaves(graph: Graph, ref: Ref, inside: Collection[int]) -> bool:
    """Return True if a value is read outside the fragment."""
    if _is_taken_along(graph, ref, inside):
        return False
    if ref in graph.outputs:
        return True
    readers = (graph.nodes[c] for c in graph.consumers[ref.node] if c not in inside)
    return any(ref in reader.inputs for reader in readers)


def is_result(graph: Graph, ref: Ref, inside: Collection[int]) -> bool:
    """Return True if a value is read outside the fragment, from whichever of the nodes that compute it."""
    if _is_taken_along(graph, ref, inside):
        return False
    return ref in graph.outputs or not readers(graph, ref).issubset(inside)


def _is_taken_along(graph: Graph, ref: Ref, inside: Collection[int]) -> bool:
    """Return True for a DequantizeLinear beside its readers: those outside have one of their own."""
    return len(inside) > 1 and graph.nodes[ref.node].op in DEQUANTISING


def extract(graph: Graph, fragment: Fragment) -> Graph:
    """Return the fragment as a graph; operands from outside become inputs, large weights get arbitrary values."""
    inside = set(fragment.nodes)
    nodes: dict[int, Node] = {}
    renamed: dict[Ref, Ref] = {}
    inputs: list[int] = []

    def outside(ref: Ref) -> Ref:
        if ref not in renamed:
            identifier = len(nodes)
            renamed[ref] = Ref(identifier)
            nodes[identifier] = _leaf(graph, ref, f"value_{identifier}")
            if nodes[identifier].op == INPUT:
                inputs.append(identifier)
        return renamed[ref]

    first = stand_ins(graph, fragment.nodes)
    run = [i for i in fragment.nodes if first[i] == i]
    for identifier in run:
        node = graph.nodes[identifier]
        firsts = [_stand_in(graph, ref, first) for ref in node.inputs]
        operands = tuple(None if r is None else renamed[r] if r.node in inside else outside(r) for r in firsts)
        place = len(nodes)
        nodes[place] = node.with_inputs(operands)
        renamed.update({Ref(identifier, i): Ref(place, i) for i in range(len(node.types))})
    values = [Ref(i, k) for i in run for k in range(len(graph.nodes[i].types))]
    outputs = [renamed[v] for v in values if is_result(graph, v, inside)]
    return make_graph(nodes, inputs, outputs, [f"output_{i}" for i in range(len(outputs))], graph.header)


def _leaf(graph: Graph, ref: Ref, name: str) -> Node:
    node, tensor_type = graph.nodes[ref.node], graph.type_of(ref)
    if not node.constant:
        return Node(INPUT, (), {}, (tensor_type,), (name,))
    if node.op == WEIGHT and (tensor_type is None or not tensor_type.is_static or not tensor_type.is_float):
        return node.with_names((name,))

    assert tensor_type is not None
    shape = tuple(d for d in tensor_type.shape or () if isinstance(d, int))
    if is_literal(tensor_type):
        values = np.asarray(literal(graph, ref), dtype=tensor_type.dtype).reshape(shape)
        return Node(WEIGHT, (), {}, (tensor_type,), (name,), True, KnownWeight(values))
    return Node(WEIGHT, (), {}, (tensor_type,), (name,), True, ArbitraryWeight(name, tensor_type.dtype, shape))
