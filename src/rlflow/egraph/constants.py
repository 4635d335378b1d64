"""The analysis of constants in the e-graph of a model: which values are known when the model is loaded.

    x * (2 + 3)     2 and 3 are stored: depth 0;  2 + 3 is constant: depth 1, number 5;  the product is not constant

A class is constant if any e-node in it is stored or reads constants alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from rlflow.egraph.egraph import check_equal_types
from rlflow.ir.node import LEAVES, WEIGHT, Node
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.ops.algebra import ELEMENT_TYPES, Algebra
from rlflow.ops.domain import FloatDomain


class Value(NamedTuple):
    """The facts of a value.

    `depth` is how many applications deep a constant is at the least, 0 for a stored one, and None for what is not
    constant. `number` is the element of a constant of one element, None if it is not known.
    """

    type: TensorType | None
    depth: int | None = None
    number: float | None = None


class Constants:
    """The analysis of types, constant depths and numbers."""

    def make(self, node: Node, operands: Sequence[Value]) -> tuple[Node, Sequence[Value]]:
        """Return the node, marked if it has become constant, and the values of its outputs."""
        if not node.constant and _is_computed(node, operands):
            node = replace(node, constant=True)
        if not node.constant:
            return node, [Value(tensor_type) for tensor_type in node.types]
        depth, number = depth_over(operands), _number(node, operands)
        return node, [Value(tensor_type, depth, number) for tensor_type in node.types]

    def merge(self, one: Value, other: Value) -> Value:
        """Return what is known of a value from two sources; `RuleError` if their types differ."""
        check_equal_types(one.type, other.type)
        depth = min((d for d in (one.depth, other.depth) if d is not None), default=None)
        number = other.number if one.number is None else one.number
        return one if (depth, number) == one[1:] else Value(one.type, depth, number)


def depth_over(operands: Sequence[Value]) -> int:
    """Return the depth of a constant application of these operands."""
    return 1 + max((operand.depth for operand in operands if operand.depth is not None), default=-1)


def _is_computed(node: Node, operands: Sequence[Value]) -> bool:
    """Return True for an application of a known operator to constants alone."""
    if node.op in LEAVES or node.is_opaque or not operands:
        return False
    return registry.is_constant(node.op, (operand.depth is not None for operand in operands))


_NUMERIC = ELEMENT_TYPES[Algebra.RING]
"""Element types whose numbers rules may name."""


def _number(node: Node, operands: Sequence[Value]) -> float | None:
    """Return the number that a constant node gives, if it is one and those that it reads are numbers, too."""
    if len(node.types) > 1 or not _is_number(node.types[0]):
        return None
    if node.op == WEIGHT:
        return node.payload.array().item()  # type: ignore[union-attr, no-any-return]
    filled = [_filled(operand) for operand in operands]
    if node.is_opaque or any(operand is None for operand in filled):
        return None
    try:
        with np.errstate(all="ignore"):
            (value,) = registry.OPERATORS[node.op].evaluate(FloatDomain(), node.attributes, filled)
    except (IndexError, TypeError):
        return None
    return value.item()


def _is_number(tensor_type: TensorType | None) -> bool:
    if tensor_type is None or tensor_type.dtype not in _NUMERIC:
        return False
    return tensor_type.is_static and tensor_type.elements == 1


def _filled(value: Value) -> np.ndarray | None:
    """Return a tensor of one element from its number, None if there is no number."""
    if value.number is None or value.type is None or value.type.shape is None:
        return None
    return np.full([d for d in value.type.shape if isinstance(d, int)], value.number, value.type.dtype)
