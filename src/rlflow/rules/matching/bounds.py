"""Proofs from the graph that a value is bounded, and so is no mask: the operators that make it, down to weights.

    Clip(x, 0, 6) Tanh(y)            at most 6
    MatMul(LayerNormalization(x), w) at most the norm's bound times the largest column sum of |w|

A proof looks at no more than `SIGHT` operators on any way down. So it depends on the neighbourhood of the value alone,
and the matches that rest on it are looked for again when something changes there (rules/matching/match_table.py).
"""

from __future__ import annotations

from math import inf
from weakref import WeakKeyDictionary

import numpy as np

from rlflow.ir.graph import Graph
from rlflow.ir.node import WEIGHT, Payload, Ref
from rlflow.ops.magnitude import Magnitude, largest
from rlflow.rules.expression import BOUND

SIGHT = 8
"""The operators on the longest way that a proof looks at: from the scores of attention to the norm before its layer."""

_READ_AT_ONCE = 2**22  # elements
_UNKNOWN = Magnitude(inf)
_STORED: WeakKeyDictionary[Payload, Magnitude] = WeakKeyDictionary()


def is_bounded(graph: Graph, ref: Ref) -> bool:
    """Return True if it is proved that no element is larger than `BOUND`, of either sign."""
    return _magnitude(graph, ref, SIGHT).largest <= BOUND


def _magnitude(graph: Graph, ref: Ref, sight: int) -> Magnitude:
    node, tensor_type = graph.nodes[ref.node], graph.type_of(ref)
    if node.op == WEIGHT and node.payload is not None and tensor_type is not None and tensor_type.is_float:
        return _stored(node.payload)
    operands = [operand for operand in node.inputs if operand is not None]
    types = [t for t in map(graph.type_of, operands) if t is not None]
    if node.is_opaque or sight == 0 or len(types) < len(node.inputs):
        return _UNKNOWN
    magnitudes = [_magnitude(graph, operand, sight - 1) for operand in operands]
    return Magnitude(largest(node.op, node.attributes, magnitudes, types))


def _stored(payload: Payload) -> Magnitude:
    """Read a weight's values, once; where they are not at hand, nothing is known."""
    if payload not in _STORED:
        array = getattr(payload, "array", None)
        _STORED[payload] = _UNKNOWN if array is None else _read(array())
    return _STORED[payload]


def _read(values: np.ndarray) -> Magnitude:
    """Read values a few rows at a time, so that a mapped weight of any size takes no memory; NaN counts as infinite."""
    largest_one, sums = 0.0, np.zeros(())
    matrix = values if values.ndim > 1 else values.reshape(1, -1)
    rows = max(1, _READ_AT_ONCE * matrix.shape[-2] // max(matrix.size, 1))
    for begin in range(0, matrix.shape[-2], rows):
        part = np.abs(matrix[..., begin : begin + rows, :])
        largest_one = max(largest_one, float(np.nan_to_num(part.max(initial=0.0), nan=inf, posinf=inf)))
        sums = sums + part.sum(axis=-2, dtype=np.float64)
    sums = np.nan_to_num(sums, nan=inf, posinf=inf)
    return Magnitude(largest_one, float(sums.max(initial=0.0)) if values.ndim > 1 else inf)
