"""Finding where a rule's source occurs in a graph, and what its target would be there.

A rule is compiled into variants, one for each way to order the operands of its commutative operators, so that
matching a variant is a plain walk down from a root without backtracking. Only where one operand is a number does the
walk itself see in which order they are, as the number is a constant. A match carries its target already
typed: a match that is listed can be applied.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, product
from typing import Any

import numpy as np

from rlflow.errors import GraphError, RuleError, TypeInferenceError
from rlflow.ir.graph import WEIGHT, Attributes, AttributeValue, Graph, Node, Ref
from rlflow.ir.tensor_type import Dimension, TensorType
from rlflow.ops import registry
from rlflow.ops.domain import FloatDomain
from rlflow.ops.reference import evaluate_value
from rlflow.rules import instances, pattern
from rlflow.rules.expression import Scope, Unproven, evaluate, holds
from rlflow.rules.instances import Instance
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.rule import Rule, VariableSpec


@dataclass(frozen=True, slots=True)
class PlannedNode:
    """A node that the rewrite will add. A negative `Ref.node` -1-i is output of planned node number i."""

    op: str
    attributes: Attributes
    inputs: tuple[Ref, ...]
    types: tuple[TensorType, ...]
    constant: bool


@dataclass(frozen=True, eq=False, slots=True)
class Match:
    """One place where `rule` applies. `nodes` are the matched nodes that run, roots first."""

    rule: Rule
    roots: tuple[Ref, ...]
    bindings: Mapping[str, Ref]
    nodes: tuple[int, ...]
    plan: tuple[PlannedNode, ...]
    targets: tuple[Ref, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """A term as it is walked: an operator's application, a variable (`variable` is its name then), or, in a source, a
    stored scalar (`number` is its value, or the attribute variable that stands for it). `number_at` is the place of the
    number beside which a commutative operator has another operand.

    Equal applications have equal serial numbers, so that nothing needs to compare terms while matching.
    """

    variable: str
    op: str = ""
    output: int = 0
    serial: int = 0
    attributes: tuple[tuple[str, Any], ...] = ()
    arguments: tuple[_Step, ...] = ()
    number: float | str | None = None
    number_at: int | None = None


def _steps(terms: Sequence[Term], *, sought: bool) -> tuple[_Step, ...]:
    """The terms as steps. Where they are `sought`, a part without variables is whatever scalar has its value."""
    serials: dict[Apply, int] = {}

    def step(term: Term) -> _Step:
        if isinstance(term, Variable):
            return _Step(term.name)
        if sought and not pattern.variables(term):
            return _Step("", number=_number(term))
        serial = serials.setdefault(term.node, len(serials))
        arguments = tuple(map(step, term.arguments))
        place = _number_at(term) if sought else None
        return _Step("", term.op, term.output, serial, term.attributes, arguments, number_at=place)

    return tuple(map(step, terms))


def _number_at(term: Apply) -> int | None:
    """The place of the number beside another operand, where their order does not matter."""
    if not registry.OPERATORS[term.op].commutative or len(term.arguments) != 2:
        return None
    return next((i for i, a in enumerate(term.arguments) if not pattern.variables(a)), None)


def _number(term: Apply) -> float | str:
    """The value of a scalar without variables, in float32; a Constant's may be an attribute variable."""
    value = dict(term.attributes).get("value_float")
    if isinstance(value, str):
        return value
    (computed,) = instances.run(instances.plan((term,), Instance({}, {}, {})), (), FloatDomain())
    return float(computed[()])


@dataclass(frozen=True)
class Variant:
    """A rule with its commutative operands in one order."""

    rule: Rule
    source: tuple[Apply, ...]
    target: tuple[Term, ...]

    @cached_property
    def has_several_roots(self) -> bool:
        return len({s.node for s in self.source}) > 1

    @cached_property
    def depth(self) -> int:
        return max(map(_depth, self.source))

    @cached_property
    def source_steps(self) -> tuple[_Step, ...]:
        return _steps(self.source, sought=True)

    @cached_property
    def target_steps(self) -> tuple[_Step, ...]:
        return _steps(self.target, sought=False)

    @cached_property
    def operand_operators(self) -> tuple[tuple[int, str], ...]:
        """Operand numbers of the first root and the operators that must be there."""
        root = self.source_steps[0]
        return tuple((i, step.op) for i, step in enumerate(root.arguments) if step.op and root.number_at is None)

    @cached_property
    def anchor(self) -> str:
        """A variable that every root reads: from one root the others are found through its consumers."""
        shared = set.intersection(*(set(pattern.variables(s)) for s in self.source))
        anchors = [v for v in pattern.variables(self.source[0]) if v in shared]
        if not anchors:
            raise RuleError(f"rule {self.rule.name!r}: its outputs share no variable, so they are separate rules")
        return anchors[0]

    @cached_property
    def ascents(self) -> tuple[tuple[str, ...], ...]:
        """For each root, the operators from the anchor (exclusive) up to the root (inclusive)."""
        return tuple(_path(s, self.anchor)[0] for s in self.source)

    @cached_property
    def descents(self) -> tuple[tuple[int, ...], ...]:
        """For each root, the operand numbers from the root down to the anchor."""
        return tuple(_path(s, self.anchor)[1] for s in self.source)

    @cached_property
    def symmetric(self) -> bool:
        """Whether the roots look alike, so that every set of roots is found once in each order."""
        return self.has_several_roots and len({repr(_up_to_names((s,), ())) for s in self.source}) == 1


def _depth(term: Term) -> int:
    return 1 + max(map(_depth, term.arguments), default=0) if isinstance(term, Apply) else 0


def _path(term: Term, name: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Operators up from the variable's first occurrence, and operand numbers down to it."""
    if isinstance(term, Variable):
        return (), ()
    place, argument = next((i, a) for i, a in enumerate(term.arguments) if name in pattern.variables(a))
    above, below = _path(argument, name)
    return (*above, term.op), (place, *below)


def compile_variants(rule: Rule) -> tuple[Variant, ...]:
    """All orders of commutative operands that are not the same rule again.

    `RuleError` if the rule has several roots that could feed each other: whatever not all of them read must
    be constant, so that merging them can never close a cycle.
    """
    if len({s.node for s in rule.source if isinstance(s, Apply)}) > 1:
        shared = set.intersection(*(set(pattern.variables(s)) for s in rule.source))
        loose = [v for v in pattern.variables(*rule.source) if v not in shared and not rule.spec(v).constant]
        if loose:
            raise RuleError(f"rule {rule.name!r}: {loose} must be constant, or its outputs might feed each other")
    seen: set[Any] = set()
    variants = []
    for source in product(*(_orders(s) for s in rule.source)):
        key = _up_to_names(source, rule.target)
        if key not in seen:
            seen.add(key)
            variants.append(Variant(rule, tuple(s for s in source if isinstance(s, Apply)), rule.target))
    return tuple(variants)


def _orders(term: Term) -> Iterator[Term]:
    if isinstance(term, Variable):
        yield term
        return
    for arguments in product(*(tuple(_orders(a)) for a in term.arguments)):
        yield Apply(term.op, term.attributes, arguments, term.output)
        turns = registry.OPERATORS[term.op].commutative and len(arguments) == 2 and arguments[0] != arguments[1]
        if turns and _number_at(term) is None:
            yield Apply(term.op, term.attributes, arguments[::-1], term.output)


def _up_to_names(source: Sequence[Term], target: Sequence[Term]) -> Any:
    names = {v: i for i, v in enumerate(pattern.variables(*source))}

    def key(term: Term, sort: bool) -> Any:
        if isinstance(term, Variable):
            return (0, names[term.name])
        arguments = [key(a, sort) for a in term.arguments]
        if sort and registry.OPERATORS[term.op].commutative:
            arguments.sort(key=repr)
        return (1, term.op, term.attributes, tuple(arguments), term.output)

    return tuple(key(s, False) for s in source), tuple(key(t, True) for t in target)


_SCALAR, _ROW_OF_ONE = TensorType("float32", ()), TensorType("float32", (1,))
"""Types of a stored number; the second is how some exporters write it."""

_ROUNDING = float(np.finfo(np.float32).eps)


class _Binding:
    """What one attempt has bound so far."""

    __slots__ = ("attributes", "graph", "matched", "tensors")

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.tensors: dict[str, Ref] = {}
        self.attributes: dict[str, AttributeValue] = {}
        self.matched: dict[int, int] = {}

    def follow(self, step: _Step, ref: Ref) -> bool:
        if step.variable:
            return self.tensors.setdefault(step.variable, ref) == ref
        if ref.index != step.output:
            return False
        node = self.graph.nodes[ref.node]
        if node.op != step.op or len(node.inputs) != len(step.arguments) or node.is_opaque:
            return False
        if self.matched.setdefault(step.serial, ref.node) != ref.node:
            return False
        for name, wanted in step.attributes:
            if not self._attribute(wanted, node.attributes.get(name)):
                return False
        operands = node.inputs
        if step.number_at is not None and not self._is_constant(operands[step.number_at]):
            operands = operands[::-1]
        for argument, operand in zip(step.arguments, operands, strict=True):
            if operand is None or not self._operand(argument, operand, node):
                return False
        return True

    def _is_constant(self, ref: Ref | None) -> bool:
        return ref is not None and self.graph.nodes[ref.node].constant

    def _operand(self, step: _Step, ref: Ref, reader: Node) -> bool:
        return self.follow(step, ref) if step.number is None else self._is_number(step.number, ref, reader)

    def _is_number(self, wanted: float | str, ref: Ref, reader: Node) -> bool:
        """Whether the value is a stored number, this one up to a rounding, that adds no axis to what its reader makes
        of the other operands.
        """
        kind = self.graph.type_of(ref)
        if not self.graph.nodes[ref.node].constant or kind not in (_SCALAR, _ROW_OF_ONE):
            return False
        others = (self.graph.type_of(r) for r in reader.inputs if r is not None and r != ref)
        if kind == _ROW_OF_ONE and not any(other is not None and other.rank for other in others):
            return False
        present = _stored_number(self.graph, ref)
        if present is None:
            return False
        if isinstance(wanted, str):
            return self.attributes.setdefault(wanted, present) == present
        return abs(present - wanted) <= _ROUNDING * abs(wanted)

    def _attribute(self, wanted: Any, present: AttributeValue | None) -> bool:
        if present is None:
            return False
        if isinstance(wanted, str) and wanted.startswith("?"):
            return self.attributes.setdefault(wanted, present) == present
        return bool(wanted == present)


def matches_at(variant: Variant, graph: Graph, root: int) -> Iterator[Match]:
    """All matches of the variant whose first root is the node `root`.

    For rules with several outputs, one match for each choice of the further roots, in either order.
    """
    first, *rest = variant.source_steps
    binding = _Binding(graph)
    if not binding.follow(first, Ref(root, first.output)):
        return
    others = [i for i, step in enumerate(variant.source_steps) if step.serial != first.serial]
    anchor = binding.tensors[variant.anchor] if others else None
    candidates = [list(climb(graph, anchor, variant.ascents[i])) for i in others] if anchor else []
    for choice in product(*candidates):
        if root in choice or len(set(choice)) < len(choice):
            continue
        attempt = _Binding(graph) if others else binding
        where = iter(choice)
        further = [Ref(root if s.serial == first.serial else next(where), s.output) for s in rest]
        roots = (Ref(root, first.output), *further)
        pairs = zip(variant.source_steps, roots, strict=True) if others else zip(rest, further, strict=True)
        if all(attempt.follow(step, ref) for step, ref in pairs):
            match = _complete(variant, graph, attempt, roots)
            if match is not None:
                yield match


def climb(graph: Graph, start: Ref, path: Sequence[str]) -> Iterator[int]:
    """Nodes that are reached from a value through consumers of these operators, one after another, by any of their
    outputs: once, where one reads several.
    """
    if not path:
        yield start.node
        return
    for reader in graph.consumers[start.node]:
        node = graph.nodes[reader]
        if node.op == path[0] and start in node.inputs:
            ends = [climb(graph, Ref(reader, output), path[1:]) for output in range(len(node.types))]
            yield from ends[0] if len(ends) == 1 else dict.fromkeys(chain.from_iterable(ends))


def descend(graph: Graph, node: int, path: Sequence[int]) -> Ref | None:
    """The value that is reached through these operands, one after another; None if there is none."""
    ref: Ref | None = Ref(node)
    for place in path:
        inputs = graph.nodes[ref.node].inputs if ref is not None else ()
        ref = inputs[place] if place < len(inputs) else None
    return ref


def _complete(variant: Variant, graph: Graph, binding: _Binding, roots: tuple[Ref, ...]) -> Match | None:
    """The match, if its variables are admitted, its inside is private, its condition holds and its target is
    typed.
    """
    rule = variant.rule
    if not graph.header.offers(rule.versions) or graph.nodes[roots[0].node].constant:
        return None
    inside = set(binding.matched.values())
    if not _private(graph, inside, {r.node for r in roots}):
        return None
    types = {}
    for name, ref in binding.tensors.items():
        kind = graph.type_of(ref)
        if kind is None:
            return None
        types[name] = kind
    if not admitted(rule, types, {n: graph.nodes[r.node].constant for n, r in binding.tensors.items()}):
        return None
    literals = _literals(rule, graph, binding)
    if literals is None:
        return None
    scope = Scope(types, binding.attributes, literals)
    if not all(holds(condition, scope) for condition in (*rule.where, *rule.worth)):
        return None
    try:
        plan, targets = _plan(variant.target_steps, graph, binding, scope)
    except (Unproven, TypeInferenceError):
        return None
    for ref, target in zip(roots, targets, strict=True):
        kind = plan[-1 - target.node].types[target.index] if target.node < 0 else graph.type_of(target)
        if kind != graph.type_of(ref):
            return None
    if not (all(kind.is_static for kind in types.values()) or _holds_at_any_size(rule, scope)):
        return None
    running = [r.node for r in roots]
    running += sorted(n for n in inside if n not in running and not graph.nodes[n].constant)
    return Match(rule, roots, dict(binding.tensors), tuple(dict.fromkeys(running)), tuple(plan), targets)


_SIZES = (
    10007,
    10009,
    10037,
    10039,
    10061,
    10067,
    10069,
    10079,
    10091,
    10093,
    10099,
    10103,
    10111,
    10133,
    10139,
    10141,
)
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
        source, target = instances.plan(rule.source, instance), instances.plan(rule.target, instance)
    except (IndexError, Unproven, TypeInferenceError):
        return False
    return source.types == target.types


def _shape(kind: TensorType) -> tuple[Dimension, ...]:
    if kind.shape is None:
        raise Unproven
    return kind.shape


def _private(graph: Graph, inside: set[int], roots: set[int]) -> bool:
    """Nobody outside reads an inner value: otherwise the rewrite would compute it twice. Constants are free."""
    for identifier in inside - roots:
        if graph.nodes[identifier].constant:
            continue
        if identifier in graph.output_nodes or not inside.issuperset(graph.consumers[identifier]):
            return False
    return True


def _literals(rule: Rule, graph: Graph, binding: _Binding) -> dict[str, float] | None:
    """The numbers of literal variables; None if one of them is not a stored scalar."""
    literals = {}
    for name, ref in binding.tensors.items():
        if not rule.spec(name).literal:
            continue
        node, kind = graph.nodes[ref.node], graph.type_of(ref)
        if node.op != WEIGHT or kind is None or not kind.is_static or kind.elements != 1:
            return None
        number = _stored_number(graph, ref)
        if number is None:
            return None
        literals[name] = number
    return literals


def _stored_number(graph: Graph, ref: Ref) -> float | None:
    """The value of a constant of one element; None where the graph does not have what it is made of."""
    try:
        return evaluate_value(graph, ref, {}, FloatDomain()).item()  # type: ignore[no-any-return]
    except GraphError:
        return None


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


def _plan(
    target: Sequence[_Step], graph: Graph, binding: _Binding, scope: Scope
) -> tuple[list[PlannedNode], tuple[Ref, ...]]:
    """The target's nodes, common subterms once, each typed from its operands."""
    plan: list[PlannedNode] = []
    done: dict[int, int] = {}

    def place(step: _Step) -> Ref:
        if step.variable:
            return binding.tensors[step.variable]
        if step.serial not in done:
            inputs = tuple(place(a) for a in step.arguments)
            attributes = {name: evaluate(pattern.thaw(value), scope) for name, value in step.attributes}
            kinds = [plan[-1 - r.node].types[r.index] if r.node < 0 else graph.type_of(r) for r in inputs]
            constant = all(plan[-1 - r.node].constant if r.node < 0 else graph.nodes[r.node].constant for r in inputs)
            types = registry.infer(step.op, attributes, kinds)
            done[step.serial] = len(plan)
            plan.append(PlannedNode(step.op, attributes, inputs, types, constant))
        return Ref(-1 - done[step.serial], step.output)

    targets = tuple(place(t) for t in target)
    return plan, targets
