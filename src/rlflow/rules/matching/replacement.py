"""The replacement of a matched source: a rule's target with its variables bound, typed before anything is rewritten.

For the rule MatMul(MatMul(x, v), w) => MatMul(x, MatMul(v, w)), with v and w constant, bound to float32[n, 64],
float32[64, 64] and float32[64, 8], two nodes are planned, the inner one constant:

    0: MatMul(v, w): float32[64, 8]       1: MatMul(x, node 0): float32[n, 8]

A rule is admitted only if all of these hold, each checked here:

- its variables' templates, constants and conditions fit, and its element types are those it was certified for;
- the target has the types of what it replaces, which are no sizes, and no value is empty;
- with dynamic dimensions, both sides are well typed for all sizes, not only if two of them happen to be equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes, Ref
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.ops import registry
from rlflow.ops.algebra import COUNTING
from rlflow.rules import pattern
from rlflow.rules.expression import Scope, Unproven, evaluate, holds
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.plan import Instance, plan_of
from rlflow.rules.rule import Rule, VariableSpec

Operand = str | Ref
"""A variable by its name, or an output of a planned node by the number of that node."""


@dataclass(frozen=True)
class PlannedNode:
    """A node that the rewrite will add, unless the graph has it already."""

    op: str
    attributes: Attributes
    inputs: tuple[Operand, ...]
    types: tuple[TensorType, ...]
    constant: bool


@dataclass(frozen=True)
class Replacement:
    """The nodes to add, operands first, and the value to read in place of each output of the source."""

    nodes: tuple[PlannedNode, ...]
    outputs: tuple[Operand, ...]


def replacement(
    rule: Rule, scope: Scope, constant: Mapping[str, bool], results: tuple[TensorType | None, ...]
) -> Replacement | None:
    """Plan the target in place of values of the types `results`; None if the rule does not apply.

    `scope` and `constant` tell the types of its variables, its attributes, and which variables are constant.
    """
    if any(map(are_sizes, results)) or not admitted(rule, scope.types, constant):
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
    planned_types = (tensor_type for node in draft.nodes for tensor_type in node.types)
    if any(map(_is_empty, (*scope.types.values(), *planned_types))):
        return None
    if not (all(tensor_type.is_static for tensor_type in scope.types.values()) or _holds_at_any_size(rule, scope)):
        return None
    return Replacement(tuple(draft.nodes), outputs)


def are_sizes(tensor_type: TensorType | None) -> bool:
    """Return True for whole numbers along one axis at most, such as the shapes that models compute.

    They take no time, and ONNX Runtime follows them to the shapes of tensors in the few ways in which exporters write
    them, so that they are left as they are.
    """
    return tensor_type is not None and tensor_type.dtype in COUNTING and (tensor_type.rank or 0) <= 1


def _is_empty(tensor_type: TensorType) -> bool:
    """Return True if there are no elements: nothing is gained there, and ONNX Runtime's MatMul refuses some."""
    return tensor_type.shape is not None and 0 in tensor_type.shape


class _Draft:
    """The nodes of a target while they are planned, each typed from its operands; common subterms become one node."""

    def __init__(self, scope: Scope, constant: Mapping[str, bool]) -> None:
        self.scope = scope
        self.constant = constant
        self.nodes: list[PlannedNode] = []
        self.numbers: dict[Apply, int] = {}

    def place(self, term: Term) -> Operand:
        """Plan the nodes of a term, operands first, and return where its value is."""
        if isinstance(term, Variable):
            return term.name
        if term.node not in self.numbers:  # outputs of one application share its node
            inputs = tuple(map(self.place, term.arguments))
            attributes = {name: evaluate(pattern.thaw(value), self.scope) for name, value in term.attributes}
            types = registry.infer(term.op, attributes, list(map(self.type_of, inputs)))
            self.numbers[term.node] = len(self.nodes)
            constant = registry.is_constant(term.op, map(self.is_constant, inputs))
            self.nodes.append(PlannedNode(term.op, attributes, inputs, types, constant))
        return Ref(self.numbers[term.node], term.output)

    def type_of(self, operand: Operand) -> TensorType:
        return self.scope.types[operand] if isinstance(operand, str) else self.nodes[operand.node].types[operand.index]

    def is_constant(self, operand: Operand) -> bool:
        return self.constant[operand] if isinstance(operand, str) else self.nodes[operand.node].constant


def admitted(rule: Rule, types: Mapping[str, TensorType], constant: Mapping[str, bool]) -> bool:
    """Return True if the bound tensors fit the variables' templates and have element types with certificates."""
    symbols: dict[str, Dimension | tuple[Dimension, ...]] = {}
    for name, tensor_type in types.items():
        spec = rule.spec(name)
        if tensor_type.dtype not in rule.elements_of(name):
            return False
        if spec.constant and not constant[name]:
            return False
        if spec.shape is None:
            continue
        if tensor_type.shape is None or not _fits(spec, tensor_type.shape, symbols):
            return False
    return True


def _fits(
    spec: VariableSpec, shape: tuple[Dimension, ...], symbols: dict[str, Dimension | tuple[Dimension, ...]]
) -> bool:
    """Return True if the shape fits a variable's template; bind the template's symbols to its dimensions."""
    template = spec.shape or ()

    # A leading "...b" takes all dimensions that the rest of the template leaves.
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
"""Large primes close to each other: none is a sum, product or multiple of others."""


def _holds_at_any_size(rule: Rule, scope: Scope) -> bool:
    """Return True if both sides are well typed, with the same types, if dynamic dimensions are different large primes.

    Dimensions of one name are equal, and nothing else about them is known. A rule that is typed only if two of them
    happen to be equal, or one of them 1, would break the model at other sizes.
    """
    named: dict[str | int, int] = {}

    def size(d: Dimension) -> int:
        if isinstance(d, int):
            return d
        name = len(named) if d is None else d
        return named.setdefault(name, _SIZES[len(named)])

    try:
        types = {
            name: TensorType(tensor_type.dtype, tuple(map(size, _shape(tensor_type))))
            for name, tensor_type in scope.types.items()
        }
        instance = Instance(types, scope.attributes, scope.literals, bounded=scope.bounded)
        source, target = plan_of(rule.source, instance), plan_of(rule.target, instance)
    except (IndexError, Unproven, TypeInferenceError):
        return False
    return source.types == target.types


def _shape(tensor_type: TensorType) -> tuple[Dimension, ...]:
    if tensor_type.shape is None:
        raise Unproven
    return tensor_type.shape
