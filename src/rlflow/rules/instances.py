"""Drawing instances of a rule: shapes and attributes that its declaration admits, and both sides as graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from rlflow.errors import RuleError, TypeInferenceError
from rlflow.ir.graph import INPUT, Attributes, AttributeValue, Graph, Header, Node, Ref, make_graph
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.ops.domain import Array, Domain
from rlflow.rules import pattern
from rlflow.rules.expression import Expression, Scope, Unproven, evaluate, holds
from rlflow.rules.pattern import Term, Variable
from rlflow.rules.rule import Rule

DIMENSIONS = (1, 2, 3, 4)
_RANKS = (0, 1, 2, 2, 3, 3, 3, 4, 4)
"""From rank 3 on a permutation may differ from its inverse: high ranks are drawn more often."""

_TURNED_RANKS = (2, 3, 3, 4, 4, 4)
"""Only from rank 4 on a permutation can leave an axis where it is and not be its own inverse."""

_LEADING = (0, 1, 2)
_TURNED_LEADING = (0, 1, 2, 2, 2)
_ONE_GROUP_REFUSED = 0.9


@dataclass(frozen=True)
class Instance:
    """A choice of shapes, attributes and indices for which the source is well typed."""

    types: Mapping[str, TensorType]
    attributes: Mapping[str, AttributeValue]
    literals: Mapping[str, float]
    indices: Mapping[str, np.ndarray] = field(default_factory=dict)

    @property
    def scope(self) -> Scope:
        return Scope(self.types, self.attributes, self.literals)

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(d for d in self.types[name].shape or () if isinstance(d, int))

    def given(self, name: str) -> np.ndarray | None:
        """The value of a literal or of indices, in the variable's shape; None where any value will do."""
        if name in self.literals and name not in self.indices:
            return np.full(self.shape(name), self.literals[name], np.float32)
        return self.indices.get(name)


def draw(rule: Rule, rng: np.random.Generator, *, attempts: int = 2000, respect_condition: bool = True) -> Instance:
    """An instance whose source is well typed and, if asked, whose condition holds; `RuleError` if none is found."""
    for _ in range(attempts):
        try:
            instance = _attempt(rule, rng)
            instance = _with_indices(rule, instance, plan(rule.source, instance), rng)
        except (TypeInferenceError, Unproven):
            continue
        if not respect_condition or all(holds(condition, instance.scope) for condition in rule.where):
            return instance
    raise RuleError(f"rule {rule.name!r}: none of {attempts} drawn instances has a well-typed source")


def is_turned(rule: Rule) -> bool:
    """Whether permutations are drawn for the rule. Which of two it should have shows but at few shapes: where the wrong
    one is well typed too, and not the inverse of itself."""
    return any(kind[0] == "permutation" for kind in rule.attributes.values())


def _attempt(rule: Rule, rng: np.random.Generator) -> Instance:
    symbols: dict[str, tuple[int, ...]] = {}
    sizes = _draw_sizes(rng)
    ranks, leading_ranks = (_TURNED_RANKS, _TURNED_LEADING) if is_turned(rule) else (_RANKS, _LEADING)
    whole = _draw_dimensions(sizes, rng, ranks[rng.integers(len(ranks))])
    leading = _draw_dimensions(sizes, rng, leading_ranks[rng.integers(len(leading_ranks))])
    types = {}
    for name in pattern.variables(*rule.source):
        template = rule.spec(name).shape
        for part in template or ():
            if isinstance(part, str) and part not in symbols:
                ellipsis = part.startswith("...")
                symbols[part] = _broadcastable(leading, rng) if ellipsis else _draw_dimensions(sizes, rng, 1)
        shape = _broadcastable(whole, rng) if template is None else _filled(template, symbols)
        types[name] = TensorType("int64" if name in rule.indices else "float32", shape)
    numbers = [name for name in types if rule.spec(name).literal and name not in rule.indices]
    literals = {name: float(np.float32(rng.uniform(1e-6, 1e-1))) for name in numbers}
    attributes: dict[str, AttributeValue] = {}
    for name, kind in rule.attributes.items():
        attributes[name] = _draw_attribute(kind, types, attributes, rng)
    return Instance(types, attributes, literals)


def _with_indices(rule: Rule, instance: Instance, source: Plan, rng: np.random.Generator) -> Instance:
    """Each index among those that the axis has which it selects from, counted from the front or from the end."""
    names, drawn = list(instance.types), dict[str, np.ndarray]()
    types = [(kind,) for kind in instance.types.values()] + [step.types for step in source.steps]
    sizes: dict[str, int] = {}
    for step in (s for s in source.steps if s.op == "Gather" and s.inputs[1].node < len(names)):
        name, size = names[step.inputs[1].node], _size(_output(types, step.inputs[0]), step.attributes["axis"])
        sizes[name] = min(size, sizes.get(name, size))
    for name, size in sizes.items():
        if size == 0:
            raise TypeInferenceError("nothing can be selected from no elements")
        drawn[name] = np.asarray(rng.integers(-size, size, instance.shape(name)))
    values = {name: int(index.reshape(())) for name, index in drawn.items() if rule.spec(name).literal}
    return replace(instance, indices=drawn, literals={**instance.literals, **values})


def _draw_sizes(rng: np.random.Generator) -> tuple[int, ...]:
    """The dimensions of one instance: one, two or all. Where all dimensions are equal, types no longer tell a
    transposed tensor from another, so that only the values can agree or not.
    """
    count = (1, 1, 2, len(DIMENSIONS))[rng.integers(4)]
    if count == 1:
        return (DIMENSIONS[rng.integers(1, len(DIMENSIONS))],)
    return tuple(DIMENSIONS[i] for i in rng.permutation(len(DIMENSIONS))[:count])


def _draw_dimensions(sizes: Sequence[int], rng: np.random.Generator, count: int) -> tuple[int, ...]:
    return tuple(sizes[int(len(sizes) * rng.random())] for _ in range(count))  # faster than rng.integers


def _broadcastable(shape: tuple[int, ...], rng: np.random.Generator) -> tuple[int, ...]:
    """The shape, or the end of it with some dimensions 1: operands drawn so often fit each other."""
    if rng.random() < 0.5:
        return shape
    ones = 1.0 if rng.random() < 0.5 else 0.2
    return tuple(1 if rng.random() < ones else d for d in shape[int(rng.integers(0, len(shape) + 1)) :])


def _filled(template: Sequence[int | str], symbols: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    return tuple(d for part in template for d in ((part,) if isinstance(part, int) else symbols[part]))


def _draw_attribute(
    kind: Sequence[Any],
    types: Mapping[str, TensorType],
    drawn: Mapping[str, AttributeValue],
    rng: np.random.Generator,
) -> AttributeValue:
    """["permutation", "x", ...] or ["axis", "x", ...] of the highest rank, ["reshape", "x"], ["uniform"],
    ["partition", "x", axis, parts], ["sizes", axis, "x", ...], ["integers", least, most, count],
    ["groups", "x", "filters"], or ["choice", a, b, ...] of expressions. An axis is a number or an attribute that
    was drawn before.
    """
    match kind:
        case ["permutation", *names]:
            rank = max(len(types[name].shape or ()) for name in names)
            return tuple(int(i) for i in rng.permutation(rank))
        case ["axis", *names]:
            rank = max(len(types[name].shape or ()) for name in names)
            if rank == 0:
                raise TypeInferenceError("a scalar has no axis")
            return int(rng.integers(-rank, 0))
        case ["reshape", name]:
            return _draw_factors(types[name].elements, rng)
        case ["partition", name, axis, int(parts)]:
            return _draw_partition(types[name], drawn.get(axis, axis), parts, rng)
        case ["sizes", axis, *names]:
            return tuple(_size(types[name], drawn.get(axis, axis)) for name in names)
        case ["uniform"]:
            return float(np.float32(rng.uniform(1e-6, 1e-1)))
        case ["integers", int(least), int(most), int(count)]:
            return tuple(int(i) for i in rng.integers(least, most + 1, count))
        case ["groups", image, filters]:
            return _draw_groups(types[image], types[filters], rng)
        case ["choice", *values]:
            chosen = values[int(rng.integers(len(values)))]
            return evaluate(chosen, Scope(types, drawn))  # type: ignore[no-any-return]
    raise RuleError(f"cannot draw an attribute of the kind {kind!r}")


def _draw_factors(elements: int, rng: np.random.Generator) -> tuple[int, ...]:
    factors = []
    for divisor in (2, 2, 3, 2, 3):
        if elements % divisor == 0 and rng.random() < 0.6:
            factors.append(divisor)
            elements //= divisor
    factors.append(elements)
    return tuple(int(f) for f in rng.permutation(factors))


def _draw_groups(image: TensorType, filters: TensorType, rng: np.random.Generator) -> int:
    """The number of groups of a convolution follows from its operands, which seldom are of several: one group is
    mostly refused, so that it is not nearly all that is drawn.
    """
    channels, seen = (kind.shape[1] if kind.shape and len(kind.shape) > 1 else 1 for kind in (image, filters))
    assert isinstance(channels, int)
    assert isinstance(seen, int)
    if channels % seen or (channels == seen and rng.random() < _ONE_GROUP_REFUSED):
        raise TypeInferenceError(f"{filters} over {image}")
    return channels // seen


def _size(kind: TensorType, axis: Any) -> int:
    shape = kind.shape or ()
    if not -len(shape) <= axis < len(shape):
        raise TypeInferenceError(f"{kind} has no axis {axis}")
    size = shape[axis]
    assert isinstance(size, int)
    return size


def _draw_partition(kind: TensorType, axis: Any, parts: int, rng: np.random.Generator) -> tuple[int, ...]:
    size = _size(kind, axis)
    if size < parts:
        raise TypeInferenceError(f"{size} cannot be split into {parts} parts")
    cuts = sorted(int(c) for c in rng.choice(np.arange(1, size), parts - 1, replace=False))
    return tuple(b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True))


@dataclass(frozen=True)
class Step:
    """One operator of a side. A `Ref.node` counts the variables first, in the order of the instance, then the
    steps.
    """

    op: str
    attributes: Attributes
    inputs: tuple[Ref, ...]
    types: tuple[TensorType, ...]


@dataclass(frozen=True)
class Plan:
    """One side of a rule at an instance, operands first, common subterms once."""

    steps: tuple[Step, ...]
    outputs: tuple[Ref, ...]
    types: tuple[TensorType, ...]


def plan(terms: tuple[Term, ...], instance: Instance) -> Plan:
    """`TypeInferenceError` if a term is not well typed, `Unproven` if an attribute cannot be computed."""
    applications, outputs = _layout(terms, tuple(instance.types))
    types: list[tuple[TensorType, ...]] = [(kind,) for kind in instance.types.values()]
    steps = []
    for op, written, inputs in applications:
        attributes = {k: evaluate(v, instance.scope) for k, v in written}
        result = registry.infer(op, attributes, [_output(types, r) for r in inputs])
        steps.append(Step(op, attributes, inputs, result))
        types.append(result)
    return Plan(tuple(steps), outputs, tuple(_output(types, r) for r in outputs))


def _output(types: Sequence[tuple[TensorType, ...]], ref: Ref) -> TensorType:
    if ref.index >= len(types[ref.node]):
        raise TypeInferenceError(f"an operator of {len(types[ref.node])} outputs has no output {ref.index}")
    return types[ref.node][ref.index]


_Application = tuple[str, tuple[tuple[str, Expression], ...], tuple[Ref, ...]]


@lru_cache(maxsize=1024)
def _layout(terms: tuple[Term, ...], variables: tuple[str, ...]) -> tuple[tuple[_Application, ...], tuple[Ref, ...]]:
    """The operators of a side, operands first, as (operator, attributes, operands), and where its outputs are."""
    places: dict[Term, int] = {Variable(name): place for place, name in enumerate(variables)}
    applications: list[_Application] = []

    def place(term: Term) -> Ref:
        if isinstance(term, Variable):
            return Ref(places[term])
        if term.node not in places:
            inputs = tuple(place(a) for a in term.arguments)
            applications.append((term.op, tuple((k, pattern.thaw(v)) for k, v in term.attributes), inputs))
            places[term.node] = len(places)
        return Ref(places[term.node], term.output)

    outputs = tuple(place(t) for t in terms)
    return tuple(applications), outputs


def run(plan: Plan, operands: Sequence[Array], domain: Domain) -> list[Array]:
    """The outputs, given the variables' values in the order of the instance."""
    values: list[Sequence[Array]] = [(operand,) for operand in operands]
    for step in plan.steps:
        arguments = [values[r.node][r.index] for r in step.inputs]
        values.append(registry.OPERATORS[step.op].evaluate(domain, step.attributes, arguments))
    return [values[r.node][r.index] for r in plan.outputs]


def as_graph(plans: Sequence[Plan], instance: Instance) -> Graph:
    """The sides together as one graph over the variables; outputs of one side after those of the other."""
    nodes = {i: Node(INPUT, (), {}, (kind,), (name,)) for i, (name, kind) in enumerate(instance.types.items())}
    inputs, outputs = list(nodes), list[Ref]()
    for one in plans:
        shift = len(nodes) - len(inputs)

        def moved(ref: Ref, shift: int = shift) -> Ref:
            return ref if ref.node < len(inputs) else Ref(ref.node + shift, ref.index)

        for step in one.steps:
            blank = ("",) * len(step.types)
            nodes[len(nodes)] = Node(step.op, tuple(map(moved, step.inputs)), step.attributes, step.types, blank)
        outputs += map(moved, one.outputs)
    names = [f"output_{i}" for i in range(len(outputs))]
    return make_graph(nodes, inputs, outputs, names, Header(opset=21))
