"""Every operator that the library understands. Any other is opaque: carried, priced, never looked into."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes, Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import (
    constant,
    convolution,
    data_movement,
    elementwise,
    fused,
    linear_algebra,
    microsoft,
    pooling,
    reduction,
)
from rlflow.ops.schema import Operator

OPERATORS: dict[str, Operator] = {
    operator.name: operator
    for family in (
        constant,
        elementwise,
        linear_algebra,
        convolution,
        pooling,
        reduction,
        data_movement,
        fused,
        microsoft,
    )
    for operator in family.OPERATORS
}


def infer(op: str, attributes: Attributes, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
    """The types of an application's outputs; `TypeInferenceError` if the operands are not admitted."""
    operator = OPERATORS[op]
    known = [t for t in inputs if t is not None]
    if len(known) != len(inputs) or not operator.arity[0] <= len(known) <= operator.arity[1]:
        raise TypeInferenceError(f"{op}: {len(known)} typed operands, expected {operator.arity}")
    return operator.infer(attributes, known)


def versions(operators: Iterable[str]) -> dict[str, int]:
    """Each domain of these operators ("" is ai.onnx), with its first version that has them all."""
    needed: dict[str, int] = {}
    for operator in map(OPERATORS.__getitem__, operators):
        needed[operator.domain] = max(operator.since, needed.get(operator.domain, 0))
    return needed


def apply(op: str, attributes: Attributes, operands: Sequence[tuple[Ref, TensorType | None, bool]]) -> Node:
    """A node of a known operator over (reference, type, is constant) operands, typed by `infer`."""
    types = infer(op, attributes, [t for _, t, _ in operands])
    return Node(
        op=op,
        inputs=tuple(ref for ref, _, _ in operands),
        attributes=attributes,
        types=types,
        names=("",) * len(types),
        constant=all(constant for _, _, constant in operands),
    )


def flops(node: Node, inputs: Sequence[TensorType | None]) -> int:
    """Floating-point operations of one execution; 0 for operators that are not understood."""
    operator = OPERATORS.get(node.op)
    if operator is None or node.is_opaque:
        return 0
    return operator.flops(node.attributes, [t for t in inputs if t], [t for t in node.types if t])


def bytes_moved(node: Node, inputs: Sequence[TensorType | None]) -> int:
    """Bytes read and written by one execution, each operand and result once."""
    operator = OPERATORS.get(node.op)
    if operator is not None and not operator.moves_data and not node.is_opaque:
        return 0
    return sum(t.nbytes for t in (*inputs, *node.types) if t is not None)
