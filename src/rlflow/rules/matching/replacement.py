"""What replaces a source: a rule's target where its variables are bound, typed before anything is rewritten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes, Ref
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.ops import registry
from rlflow.rules import pattern
from rlflow.rules.expression import Scope, Unproven, evaluate, holds
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.plan import Instance, plan_of
from rlflow.rules.rule import Rule, VariableSpec

Operand = str | Ref
"""A variable by its name, or an output of a planned node by that node's number."""


@dataclass(frozen=True)
class PlannedNode:
    """A node that the rewrite will add."""

    op: str
    attributes: Attributes
    inputs: tuple[Operand, ...]
    types: tuple[TensorType, ...]
    constant: bool


@dataclass(frozen=True)
class Replacement:
    """The nodes to add, operands first, and for each output of the source what is read in its place."""

    nodes: tuple[PlannedNode, ...]
    outputs: tuple[Operand, ...]


def replacement(
    rule: Rule, scope: Scope, constant: Mapping[str, bool], results: tuple[TensorType | None, ...]
) -> Replacement | None:
    """The target in place of values of the types `results`; None if the rule is not for what `scope` and `constant` say
    of its variables.
    """
    if not admitted(rule, scope.types, constant):
        return None
    if not all(holds(condition, scope) for condition in (*rule.where, *rule.profitable_if)):
        return None
    draft = _Draft(scope, constant)
    try:
        outputs = tuple(map(draft.place, rule.target))
    except (Unproven, TypeInferenceError):
        return None
    if tuple(map(draft.type_of, outputs)) != results:
        return None
    if any(map(_is_empty, (*scope.types.values(), *(kind for node in draft.nodes for kind in node.types)))):
        return None
    if not (all(kind.is_static for kind in scope.types.values()) or _holds_at_any_size(rule, scope)):
        return None
    return Replacement(tuple(draft.nodes), outputs)


def _is_empty(kind: TensorType) -> bool:
    """Whether it has no elements: there is nothing to gain, and ONNX Runtime's MatMul refuses to broadcast them."""
    return kind.shape is not None and 0 in kind.shape


class _Draft:
    """Nodes as they are planned, each typed from its operands; common subterms once."""

    def __init__(self, scope: Scope, constant: Mapping[str, bool]) -> None:
        self.scope = scope
        self.constant = constant
        self.nodes: list[PlannedNode] = []
        self.numbers: dict[Apply, int] = {}

    def place(self, term: Term) -> Operand:
        if isinstance(term, Variable):
            return term.name
        if term.node not in self.numbers:
            inputs = tuple(map(self.place, term.arguments))
            attributes = {name: evaluate(pattern.thaw(value), self.scope) for name, value in term.attributes}
            types = registry.infer(term.op, attributes, list(map(self.type_of, inputs)))
            self.numbers[term.node] = len(self.nodes)
            self.nodes.append(PlannedNode(term.op, attributes, inputs, types, all(map(self.is_constant, inputs))))
        return Ref(self.numbers[term.node], term.output)

    def type_of(self, operand: Operand) -> TensorType:
        return self.scope.types[operand] if isinstance(operand, str) else self.nodes[operand.node].types[operand.index]

    def is_constant(self, operand: Operand) -> bool:
        return self.constant[operand] if isinstance(operand, str) else self.nodes[operand.node].constant


_CERTIFIED = frozenset({"float32", "float64"})
"""Certificates say nothing of narrower floats, where a product overflows that its quotient does not."""

_COUNTING = frozenset({"int32", "int64"})


def admitted(rule: Rule, types: Mapping[str, TensorType], constant: Mapping[str, bool]) -> bool:
    """Whether the bound tensors are of the kinds that the rule's variables stand for, and for which it is certified."""
    symbols: dict[str, Dimension | tuple[Dimension, ...]] = {}
    for name, kind in types.items():
        spec = rule.spec(name)
        if kind.dtype not in (_COUNTING if name in rule.indices else _CERTIFIED) or (
            spec.constant and not constant[name]
        ):
            return False
        if spec.shape is not None and (kind.shape is None or not _fits(spec, kind.shape, symbols)):
            return False
    return True


def _fits(
    spec: VariableSpec, shape: tuple[Dimension, ...], symbols: dict[str, Dimension | tuple[Dimension, ...]]
) -> bool:
    template = spec.shape or ()
    if template and isinstance(template[0], str) and template[0].startswith("..."):
        leading = len(shape) - (len(template) - 1)
        if leading < 0 or symbols.setdefault(template[0], shape[:leading]) != shape[:leading]:
            return False
        template, shape = template[1:], shape[leading:]
    if len(template) != len(shape):
        return False
    for wanted, present in zip(template, shape, strict=True):
        if present is None:
            return False
        if (wanted if isinstance(wanted, int) else symbols.setdefault(wanted, present)) != present:
            return False
    return True


# fmt: off
_SIZES = (
    10007, 10009, 10037, 10039, 10061, 10067, 10069, 10079, 10091, 10093, 10099, 10103, 10111, 10133, 10139, 10141,
)
# fmt: on
"""Primes: no size is another one, nor a sum or product of others."""


def _holds_at_any_size(rule: Rule, scope: Scope) -> bool:
    """Whether both sides are well typed and of one type where all open dimensions are different numbers: those of one
    name are equal, and nothing else about them is known. What is typed only if two of them happen to be equal, or one
    to be 1, would break the model at other sizes.
    """
    named: dict[str | int, int] = {}

    def size(d: Dimension) -> int:
        if isinstance(d, int):
            return d
        name = len(named) if d is None else d
        return named.setdefault(name, _SIZES[len(named)])

    try:
        types = {n: TensorType(kind.dtype, tuple(map(size, _shape(kind)))) for n, kind in scope.types.items()}
        instance = Instance(types, scope.attributes, scope.literals)
        source, target = plan_of(rule.source, instance), plan_of(rule.target, instance)
    except (IndexError, Unproven, TypeInferenceError):
        return False
    return source.types == target.types


def _shape(kind: TensorType) -> tuple[Dimension, ...]:
    if kind.shape is None:
        raise Unproven
    return kind.shape
