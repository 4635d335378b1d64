"""Every operator that the library understands, by name, and what is known of those that it merely carries.

A node of an operator that is not in `OPERATORS` is opaque: carried, priced, never looked into. What is asked of any
operator at all is a trait (`TRAITS`), found by the operator's name, or by its type where the domain does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

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
    quantisation,
    reduction,
    views,
)
from rlflow.ops.carried import CARRIED
from rlflow.ops.schema import Operator
from rlflow.ops.traits import Traits

OPERATORS: dict[str, Operator] = {
    operator.name: operator
    for family in (
        constant,
        elementwise,
        linear_algebra,
        convolution,
        pooling,
        reduction,
        views,
        data_movement,
        quantisation,
        fused,
        microsoft,
    )
    for operator in family.OPERATORS
}

TRAITS: Mapping[str, Traits] = {name: operator.traits for name, operator in OPERATORS.items()} | CARRIED
"""Traits by qualified name. Operators that are not here have none."""

NO_TRAITS = Traits()


def _by_type(traits: Mapping[str, Traits]) -> dict[str, Traits]:
    """The same by the name within the domain; of several of one name, that of ai.onnx."""
    ordered = sorted(traits, key=lambda name: "." not in name)
    return {name.rpartition(".")[2]: traits[name] for name in ordered}


TRAITS_BY_TYPE: Mapping[str, Traits] = _by_type(TRAITS)
"""For readers of a model that do not ask after domains: com.microsoft calls its operators as ai.onnx does, or did."""


def having(asked: Callable[[Traits], object]) -> frozenset[str]:
    """The qualified names of operators whose traits answer yes."""
    return frozenset(name for name, traits in TRAITS.items() if asked(traits))


def types_having(asked: Callable[[Traits], object]) -> frozenset[str]:
    """The same names without their domains."""
    return frozenset(name.rpartition(".")[2] for name in having(asked))


def infer(op: str, attributes: Attributes, inputs: Sequence[TensorType | None]) -> tuple[TensorType, ...]:
    """Return the types of an application's outputs; `TypeInferenceError` if the operands are not admitted."""
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


def is_constant(op: str, operands: Iterable[bool]) -> bool:
    """Return whether an application of a known operator is computed when the model is loaded, given which of its
    operands are.
    """
    return not OPERATORS[op].traits.dequantises and all(operands)


def apply(op: str, attributes: Attributes, operands: Sequence[tuple[Ref, TensorType | None, bool]]) -> Node:
    """A node of a known operator over (reference, type, is constant) operands, typed by `infer`."""
    types = infer(op, attributes, [t for _, t, _ in operands])
    return Node(
        op=op,
        inputs=tuple(ref for ref, _, _ in operands),
        attributes=attributes,
        types=types,
        names=("",) * len(types),
        constant=is_constant(op, (constant for _, _, constant in operands)),
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
    if operator is not None and operator.traits.view and not node.is_opaque:
        return 0
    return sum(t.nbytes for t in (*inputs, *node.types) if t is not None)
