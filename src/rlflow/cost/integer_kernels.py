"""The nodes that ONNX Runtime computes with whole numbers, where QuantizeLinear and DequantizeLinear quantise a model.

    x -> DequantizeLinear -> MatMul(., DequantizeLinear(weights)) -> QuantizeLinear        one kernel: QLinearMatMul
    x -> DequantizeLinear -> Transpose -> Softmax                                          the Transpose moves bytes
    x -> DequantizeLinear -> Erf -> QuantizeLinear                                         three kernels, Erf of floats

It selects an operator with its neighbours (`ops/integer_kernels.py` has the table), and sees through movements, past
which it carries both conversions. Each reader of a DequantizeLinear has one of its own. An int8 counts as uint8 where
a QuantizeLinear and its DequantizeLinear have one reader each: its products on x86 refuse others.

The invariant: the kernels that compute are those of ONNX Runtime's own optimised model, of version 1.32
(tests/cost/test_integer_kernels.py). Conversions are too in models as a tool quantises them; elsewhere one that several
nodes of a region read as floats counts once here, and one that ONNX Runtime adds behind a movement does not count.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from rlflow.ir.graph import Graph
from rlflow.ir.node import Node, Ref
from rlflow.ops.algebra import QUANTISED
from rlflow.ops.domain import FloatDomain
from rlflow.ops.integer_kernels import INTEGER_KERNELS, Clips, Computes, Converts, Moves
from rlflow.ops.registry import OPERATORS, having
from rlflow.ops.traits import Fusion

DEQUANTISING = frozenset(name for name, part in INTEGER_KERNELS.items() if part == Converts(to_floats=True))
QUANTISING = frozenset(name for name, part in INTEGER_KERNELS.items() if part == Converts(to_floats=False))
CONVERTING = DEQUANTISING | QUANTISING
_CLIPS = frozenset(name for name, part in INTEGER_KERNELS.items() if isinstance(part, Clips))
_CARRYING = frozenset(name for name, part in INTEGER_KERNELS.items() if part == Moves(carries=True))
_PASSED = _CARRYING | _CLIPS | CONVERTING
_SUMS = having(lambda traits: traits.fusion & Fusion.SUM)


class Kernels(NamedTuple):
    """The nodes whose kernels work on whole numbers, those that need no kernel, and for the last node of several that
    are one kernel the one that does the work.
    """

    whole: frozenset[int]
    idle: frozenset[int]
    worker: dict[int, int]


def kernels_of(graph: Graph, nodes: Collection[int]) -> Kernels:
    """Tell how ONNX Runtime runs these nodes, which have the DequantizeLinears that they read among them.

    A node by itself runs as it is written.
    """
    if len(nodes) == 1:
        return Kernels(frozenset(i for i in nodes if _is_of_bytes(graph.nodes[i]) and moves(graph, i)), frozenset(), {})
    whole = frozenset(i for i in nodes if computes(graph, i) or moves(graph, i))
    idle = {i for i in nodes if _is_idle(graph, i, nodes)}
    worker: dict[int, int] = {}
    for identifier in whole:
        *others, last = _computed_with(graph, identifier)
        if others and last in nodes:
            worker[last] = identifier
            idle.update(others)
    return Kernels(whole, frozenset(idle), worker)


def computes(graph: Graph, identifier: int) -> bool:
    """Return True if ONNX Runtime computes a node with whole numbers.

    It never does where a clip reads the result that is not left out.
    """
    node = graph.nodes[identifier]
    part = INTEGER_KERNELS.get(node.op)
    if not isinstance(part, Computes):
        return False
    operands = [ref for ref in node.inputs[part.first :] if ref is not None]
    kind = _kind(graph, operands[0]) if operands else None
    if kind is None:
        return False
    last = _with_bias(graph, identifier)
    if last != identifier:
        operands += [ref for ref in graph.nodes[last].inputs if ref is not None and ref.node != identifier]
    quantiser, clip = _quantiser_of(graph, last), _sole_reader(graph, Ref(last), _CLIPS)
    if quantiser is not None:
        if _made_kind(graph, quantiser, Ref(last)) != kind:
            return False
        if part.quantises_constants or last != identifier:
            operands = [operands[0], *(ref for ref in operands[1:] if not graph.nodes[ref.node].constant)]
    elif last != identifier or not part.to_floats or (clip is not None and _uses(graph, Ref(clip)) == 1):
        return False
    kinds = {_kind(graph, ref) for ref in operands}
    if None in kinds or (part.unsigned and kind == "int8"):
        return False
    return part.weights or (len(kinds) == 1 and all(_is_by_one_scale(graph, ref) for ref in operands))


def moves(graph: Graph, identifier: int) -> bool:
    """Return True if ONNX Runtime moves bytes by a node, perhaps in the stead of floats."""
    node = graph.nodes[identifier]
    part = INTEGER_KERNELS.get(node.op)
    if not isinstance(part, Moves) or not node.inputs or node.inputs[0] is None:
        return False
    if _is_of_bytes(node):
        return True
    dequantiser, kind = _dequantiser_of(graph, node.inputs[0]), _kind(graph, node.inputs[0])
    results = [Ref(identifier, index) for index in range(len(node.types))]
    if dequantiser is None:
        return part.carries and _carried_to(graph, results[0]) is not None
    if part.carries and _sole_reader(graph, results[0], QUANTISING) is None:
        return kind == _kind(graph, results[0])
    quantisers = [_carried_to(graph, result) for result in results]
    return all(
        q is not None and _are_alike(graph.nodes[q], graph.nodes[dequantiser]) and kind == _made_kind(graph, q, result)
        for q, result in zip(quantisers, results, strict=True)
    )


def may_be_one(graph: Graph, producer: int, reader: Node) -> bool:
    """Return True if ONNX Runtime might compute with whole numbers what a node and one that reads it make together."""
    first, second = INTEGER_KERNELS.get(graph.nodes[producer].op), INTEGER_KERNELS.get(reader.op)
    if first is None or second is None or Converts(to_floats=True) in (first, second):
        return False
    if isinstance(second, Moves) and _is_of_bytes(reader):
        return isinstance(first, Moves | Converts)
    if _quantiser_of(graph, producer) is not None:
        return True
    is_moved = isinstance(first, Moves) and not isinstance(second, Clips)
    return is_moved and _dequantiser_of(graph, Ref(producer)) is not None


def in_one_chain(graph: Graph, nodes: Collection[int], added: Iterable[Node] = ()) -> set[int]:
    """Return these nodes with those up to which ONNX Runtime sees from them, where any of all converts; else none."""
    found = set(nodes)
    for identifier in nodes:
        found.update(_behind(graph, identifier))
        found.update(_beyond(graph, identifier))
    ops = {*(graph.nodes[i].op for i in found), *(node.op for node in added)}
    return found if ops & CONVERTING else set()


def dequantisers(graph: Graph, nodes: Iterable[int]) -> set[int]:
    """Return the DequantizeLinears that these nodes read."""
    return {s for i in nodes for s in graph.nodes[i].sources if graph.nodes[s].op in DEQUANTISING}


def taken_as(graph: Graph, identifier: int) -> str:
    """Return as what ONNX Runtime takes the whole numbers of a conversion, beyond their type; "" for other nodes."""
    node = graph.nodes[identifier]
    if node.op in QUANTISING and node.inputs[0] is not None:
        return _made_kind(graph, identifier, node.inputs[0])
    if node.op not in DEQUANTISING:
        return ""
    readers = (c for c in graph.consumers[identifier] if graph.nodes[c].op in QUANTISING)
    return f"{_kind(graph, Ref(identifier))}, {any(_is_undone(graph, identifier, c) for c in readers)}"


def _behind(graph: Graph, identifier: int) -> Iterator[int]:
    """List what comes before a node that is seen through or converts, up to the first that does neither."""
    while graph.nodes[identifier].op in _PASSED and (ref := graph.nodes[identifier].inputs[0]) is not None:
        identifier = ref.node
        yield identifier


def _beyond(graph: Graph, identifier: int) -> Iterator[int]:
    """List what comes after a node, each way up to the first that neither is seen through nor converts."""
    waiting = [identifier]
    while waiting:
        for reader in graph.consumers[waiting.pop()]:
            yield reader
            if graph.nodes[reader].op in _PASSED:
                waiting.append(reader)


def _dequantiser_of(graph: Graph, ref: Ref) -> int | None:
    """Return the DequantizeLinear that a value comes from, perhaps past movements."""
    source = _source(graph, ref)
    return source if graph.nodes[source].op in DEQUANTISING else None


def _source(graph: Graph, ref: Ref) -> int:
    """Return the node that a value comes from, past movements."""
    while graph.nodes[ref.node].op in _CARRYING and (operand := graph.nodes[ref.node].inputs[0]) is not None:
        ref = operand
    return ref.node


def _quantiser_of(graph: Graph, identifier: int) -> int | None:
    """Return the QuantizeLinear that alone reads a result, perhaps past a clip that is left out and movements."""
    clip = _sole_reader(graph, Ref(identifier), _CLIPS)
    if clip is None:
        return _carried_to(graph, Ref(identifier))
    return _carried_to(graph, Ref(clip)) if _is_left_out(graph, clip) else None


def _carried_to(graph: Graph, ref: Ref) -> int | None:
    """Return the QuantizeLinear that alone reads a value, perhaps past movements."""
    while (reader := _sole_reader(graph, ref, _CARRYING | QUANTISING)) is not None:
        if graph.nodes[reader].op in QUANTISING:
            return reader
        ref = Ref(reader)
    return None


def _sole_reader(graph: Graph, ref: Ref, among: Collection[str]) -> int | None:
    """Return the node that reads a value as its first operand, if nobody else does and its operator is one of these."""
    if ref.node in graph.output_nodes and ref in graph.outputs:
        return None
    readers = [c for c in graph.consumers[ref.node] if ref in graph.nodes[c].inputs]
    if len(readers) != 1 or graph.nodes[readers[0]].op not in among:
        return None
    inputs = graph.nodes[readers[0]].inputs
    return readers[0] if inputs[0] == ref and inputs.count(ref) == 1 else None


def _is_left_out(graph: Graph, clip: int) -> bool:
    """Return True for a clip that keeps all numbers between the ends of the QuantizeLinear that reads it."""
    quantiser, node = _carried_to(graph, Ref(clip)), graph.nodes[clip]
    if quantiser is None or node.is_opaque or graph.nodes[quantiser].is_opaque:
        return False
    attributes: Mapping[str, Any] = graph.nodes[quantiser].attributes
    steps = np.subtract(QUANTISED[attributes["to"]], attributes["zero_point"], dtype=np.float32)
    ends = steps * np.float32(attributes["scale"])
    (kept,) = OPERATORS[node.op].evaluate(FloatDomain(), node.attributes, [ends])
    return bool(np.array_equal(kept, ends))


def _with_bias(graph: Graph, identifier: int) -> int:
    """Return the sum that adds a row to a product of matrices, which ONNX Runtime makes one of; else the node."""
    node = graph.nodes[identifier]
    part = INTEGER_KERNELS.get(node.op)
    if not isinstance(part, Computes) or not part.to_floats or part.quantises_constants:
        return identifier
    readers = graph.consumers[identifier]
    if len(readers) != 1 or identifier in graph.output_nodes or graph.nodes[readers[0]].op not in _SUMS:
        return identifier
    rows = [graph.type_of(r) for r in graph.nodes[readers[0]].inputs if r is not None and r.node != identifier]
    weights = graph.type_of(node.inputs[1]) if node.inputs[1] is not None else None
    if len(rows) != 1 or rows[0] is None or weights is None or weights.shape is None or len(weights.shape) != 2:
        return identifier
    return readers[0] if rows[0].shape == weights.shape[1:] else identifier


def _computed_with(graph: Graph, identifier: int) -> list[int]:
    """Return the nodes that one kernel of whole numbers computes, from the one that does the work to the last."""
    node = graph.nodes[identifier]
    if len(node.types) > 1 or (moves(graph, identifier) and not _comes_from_bytes(graph, node.sources[0])):
        return [identifier]
    nodes = list(dict.fromkeys((identifier, _with_bias(graph, identifier))))
    clip = _sole_reader(graph, Ref(nodes[-1]), _CLIPS)
    if clip is not None and _is_left_out(graph, clip):
        nodes.append(clip)
    quantiser = _sole_reader(graph, Ref(nodes[-1]), QUANTISING)
    return nodes if quantiser is None else [*nodes, quantiser]


def _kind(graph: Graph, ref: Ref) -> str | None:
    """Return the type of the whole numbers as which ONNX Runtime takes a value, None where it takes floats."""
    dequantiser = _dequantiser_of(graph, ref)
    operand = None if dequantiser is None else graph.nodes[dequantiser].inputs[0]
    if dequantiser is None or operand is None:
        return None
    kind = graph.type_of(operand)
    is_pair = ref.node != dequantiser or (
        graph.nodes[operand.node].op in QUANTISING and _sole_reader(graph, operand, DEQUANTISING) is not None
    )
    return _paired(kind.dtype if kind else "", is_pair and _uses(graph, ref) == 1)


def _made_kind(graph: Graph, quantiser: int, result: Ref) -> str:
    """Return the type of the whole numbers as which ONNX Runtime has a result quantised."""
    (kind,) = graph.nodes[quantiser].types
    reader = _sole_reader(graph, Ref(quantiser), DEQUANTISING)
    is_carried = _sole_reader(graph, result, _CARRYING) is not None
    return _paired(kind.dtype if kind else "", is_carried or (reader is not None and _uses(graph, Ref(reader)) == 1))


def _paired(dtype: str, is_pair: bool) -> str:
    return "uint8" if dtype == "int8" and is_pair else dtype


def _is_undone(graph: Graph, dequantiser: int, quantiser: int) -> bool:
    """Return True for a QuantizeLinear of what a DequantizeLinear makes, where ONNX Runtime leaves out both: they are
    alike, or the inner ones of two pairs in a row, which it makes one.
    """
    first, second = graph.nodes[dequantiser], graph.nodes[quantiser]
    (operand, *_), last = first.inputs, _sole_reader(graph, Ref(quantiser), DEQUANTISING)
    if operand is None or graph.type_of(operand) != second.types[0]:
        return False
    if _are_alike(first, second):
        return True
    if last is None or any(_uses(graph, ref) != 1 for ref in (operand, Ref(dequantiser), Ref(last))):
        return False
    before = graph.nodes[operand.node]
    return before.op in QUANTISING and _are_alike(before, first) and _are_alike(second, graph.nodes[last])


def _is_by_one_scale(graph: Graph, ref: Ref) -> bool:
    """Return True unless the DequantizeLinear behind a value has scales along an axis."""
    _, *scales = graph.nodes[_source(graph, ref)].inputs
    scale = graph.type_of(scales[0]) if scales and scales[0] is not None else None
    return scale is None or scale.elements == 1


def _is_of_bytes(node: Node) -> bool:
    return node.types[0] is not None and node.types[0].dtype in QUANTISED


def _uses(graph: Graph, ref: Ref) -> int:
    """Return how often a value is read or returned."""
    return sum(graph.nodes[c].inputs.count(ref) for c in graph.consumers[ref.node]) + graph.outputs.count(ref)


def _are_alike(first: Node, second: Node) -> bool:
    """Return True for conversions by one scale and one zero point."""
    return (
        all(first.attributes.get(name) == second.attributes.get(name) for name in ("scale", "zero_point"))
        and first.inputs[1:] == second.inputs[1:]
    )


def _comes_from_bytes(graph: Graph, identifier: int) -> bool:
    """Return True where bytes are moved from where they are made, False where floats are quantised before that."""
    source = _source(graph, Ref(identifier))
    if graph.nodes[source].op in _CLIPS:
        source = graph.nodes[source].sources[0]
    is_made = computes(graph, source) or _ends_product(graph, source) or moves(graph, source)
    return is_made or graph.nodes[source].op in DEQUANTISING


def _ends_product(graph: Graph, identifier: int) -> bool:
    """Return True for a sum that adds a bias to a product of whole numbers."""
    sources = graph.nodes[identifier].sources if graph.nodes[identifier].op in _SUMS else ()
    return any(_with_bias(graph, source) == identifier and computes(graph, source) for source in sources)


def _is_idle(graph: Graph, identifier: int, nodes: Collection[int]) -> bool:
    """Return True for a node that needs no kernel, as nobody among these reads what it makes of its operand."""
    node = graph.nodes[identifier]
    op = node.op
    if op in _CLIPS:
        return _is_left_out(graph, identifier)
    if op in QUANTISING:
        source = node.sources[0]
        if graph.nodes[source].op in DEQUANTISING:
            return _is_undone(graph, source, identifier)
        return len(graph.nodes[source].types) > 1 and moves(graph, source)
    readers = [c for c in graph.consumers[identifier] if c in nodes]
    return op in DEQUANTISING and not any(_reads_floats(graph, identifier, c) for c in readers)


def _reads_floats(graph: Graph, identifier: int, reader: int) -> bool:
    """Return True if a node reads as floats what comes from a DequantizeLinear, perhaps past movements of bytes."""
    if computes(graph, reader) or _ends_product(graph, reader):
        return False
    if graph.nodes[reader].op in QUANTISING:
        return graph.nodes[identifier].op in DEQUANTISING and not _is_undone(graph, identifier, reader)
    if not moves(graph, reader):
        return True
    return reader in graph.output_nodes or any(_reads_floats(graph, reader, c) for c in graph.consumers[reader])
