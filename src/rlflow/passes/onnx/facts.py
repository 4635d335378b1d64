"""The facts of an ONNX program: its operations by type, and what they cost as they are written."""

from __future__ import annotations

from collections import Counter

from onnx import ModelProto

from rlflow.ir.graph import Graph
from rlflow.ir.node import INPUT, WEIGHT, Node
from rlflow.onnx_io import graph_of
from rlflow.onnx_io.node_proto import qualified_name
from rlflow.ops import registry
from rlflow.passes.backend import Facts, PassCost
from rlflow.passes.onnx.normal_form import operations_of
from rlflow.passes.onnx.operators import TRANSCENDENTAL


def facts_of(model: ModelProto, key: str) -> Facts:
    """Return the facts of a model in normal form that has this key."""
    counts = Counter(map(qualified_name, operations_of(model.graph)))
    return Facts(key, tuple(sorted(counts.items())), cost_of(graph_of(model)))


def cost_of(graph: Graph) -> PassCost:
    """Add up the work of all operations as they are written, those on weights alone included.

    Of an operator that the library does not understand, only the bytes of operands and results are known.
    """
    flops = transcendentals = bytes_accessed = 0
    for node in graph.nodes.values():
        if node.op in (INPUT, WEIGHT):
            continue
        operands = [graph.type_of(ref) for ref in node.inputs if ref is not None]
        flops += registry.flops(node, operands)
        bytes_accessed += registry.bytes_moved(node, operands)
        transcendentals += _transcendentals(node)
    return PassCost(float(flops), float(transcendentals), float(bytes_accessed))


def _transcendentals(node: Node) -> int:
    first = next(iter(node.types), None)
    if node.op.rpartition(".")[2] not in TRANSCENDENTAL or first is None:
        return 0
    return first.elements
