"""Drawing instances of a rule: shapes and attributes that its declaration admits, and both sides as graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from rlflow.errors import RuleError, TypeInferenceError
from rlflow.ir.graph import INPUT, AttributeValue, Graph, Header, Node, Ref, make_graph
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.rules import pattern
from rlflow.rules.expression import Scope, Unproven, evaluate, holds
from rlflow.rules.pattern import Apply, Term, Variable
from rlflow.rules.rule import Rule, VariableSpec

DIMENSIONS = (1, 2, 3, 4)
_MAX_RANK = 4


@dataclass(frozen=True)
class Instance:
    """A choice of shapes and attributes for which the source is well typed."""

    types: Mapping[str, TensorType]
    attributes: Mapping[str, AttributeValue]
    literals: Mapping[str, float]

    @property
    def scope(self) -> Scope:
        return Scope(self.types, self.attributes, self.literals)


def draw(rule: Rule, rng: np.random.Generator, *, attempts: int = 2000, respect_condition: bool = True) -> Instance:
    """An instance whose source is well typed and, if asked, whose condition holds; `RuleError` if none is found."""
    for _ in range(attempts):
        try:
            instance = _attempt(rule, rng)
            side(rule.source, instance)
        except (TypeInferenceError, Unproven):
            continue
        if not respect_condition or all(holds(condition, instance.scope) for condition in rule.where):
            return instance
    raise RuleError(f"rule {rule.name!r}: none of {attempts} drawn instances has a well-typed source")


def _attempt(rule: Rule, rng: np.random.Generator) -> Instance:
    symbols: dict[str, tuple[int, ...]] = {}
    names = pattern.variables(*rule.source)
    types = {name: TensorType("float32", _draw_shape(rule.spec(name), symbols, rng)) for name in names}
    literals = {name: float(np.float32(rng.uniform(1e-6, 1e-1))) for name in names if rule.spec(name).literal}
    attributes = {name: _draw_attribute(kind, types, rng) for name, kind in rule.attributes.items()}
    return Instance(types, attributes, literals)


def _draw_shape(spec: VariableSpec, symbols: dict[str, tuple[int, ...]], rng: np.random.Generator) -> tuple[int, ...]:
    if spec.shape is None:
        return tuple(int(d) for d in rng.choice(DIMENSIONS, rng.integers(0, _MAX_RANK + 1)))
    shape: list[int] = []
    for part in spec.shape:
        if isinstance(part, int):
            shape.append(part)
            continue
        if part not in symbols:
            count = int(rng.integers(0, 3)) if part.startswith("...") else 1
            symbols[part] = tuple(int(d) for d in rng.choice(DIMENSIONS, count))
        shape.extend(symbols[part])
    return tuple(shape)


def _draw_attribute(kind: Sequence[Any], types: Mapping[str, TensorType], rng: np.random.Generator) -> AttributeValue:
    """["permutation", "x"], ["axis", "x"], ["reshape", "x"], ["partition", "x", axis, parts], ["uniform"], or
    ["choice", a, b, ...]."""
    match kind:
        case ["permutation", name]:
            return tuple(int(i) for i in rng.permutation(len(types[name].shape or ())))
        case ["axis", name]:
            rank = len(types[name].shape or ())
            if rank == 0:
                raise TypeInferenceError("a scalar has no axis")
            return int(rng.integers(-rank, 0))
        case ["reshape", name]:
            return _draw_factors(types[name].elements, rng)
        case ["partition", name, int(axis), int(parts)]:
            return _draw_partition(types[name], axis, parts, rng)
        case ["uniform"]:
            return float(np.float32(rng.uniform(1e-6, 1e-1)))
        case ["choice", *values]:
            chosen = values[int(rng.integers(len(values)))]
            return pattern.freeze(chosen)  # type: ignore[no-any-return]
    raise RuleError(f"cannot draw an attribute of the kind {kind!r}")


def _draw_factors(elements: int, rng: np.random.Generator) -> tuple[int, ...]:
    factors = []
    for divisor in (2, 2, 3, 2, 3):
        if elements % divisor == 0 and rng.random() < 0.6:
            factors.append(divisor)
            elements //= divisor
    factors.append(elements)
    return tuple(int(f) for f in rng.permutation(factors))


def _draw_partition(kind: TensorType, axis: int, parts: int, rng: np.random.Generator) -> tuple[int, ...]:
    shape = kind.shape or ()
    if not -len(shape) <= axis < len(shape):
        raise TypeInferenceError(f"{kind} has no axis {axis}")
    size = shape[axis]
    assert isinstance(size, int)
    if size < parts:
        raise TypeInferenceError(f"{size} cannot be split into {parts} parts")
    cuts = sorted(int(c) for c in rng.choice(np.arange(1, size), parts - 1, replace=False))
    return tuple(b - a for a, b in zip([0, *cuts], [*cuts, size], strict=True))


def side(terms: Sequence[Term], instance: Instance) -> Graph:
    """One side of the rule as a graph whose inputs are the variables, in the order of the instance.

    `TypeInferenceError` if it is not well typed, `Unproven` if an attribute cannot be computed.
    """
    nodes: dict[int, Node] = {}
    variables: dict[str, Ref] = {}
    for name, kind in instance.types.items():
        variables[name] = Ref(len(nodes))
        nodes[len(nodes)] = Node(INPUT, (), {}, (kind,), (name,))
    done: dict[Apply, int] = {}

    def place(term: Term) -> Ref:
        if isinstance(term, Variable):
            return variables[term.name]
        if term.node not in done:
            inputs = [place(a) for a in term.arguments]
            attributes = {k: evaluate(pattern.thaw(v), instance.scope) for k, v in term.attributes}
            operands = [(r, nodes[r.node].types[r.index], False) for r in inputs]
            done[term.node] = len(nodes)
            nodes[len(nodes)] = registry.apply(term.op, attributes, operands)
        ref = Ref(done[term.node], term.output)
        if ref.index >= len(nodes[ref.node].types):
            raise TypeInferenceError(f"{term.op} has no output {ref.index}")
        return ref

    outputs = [place(t) for t in terms]
    names = [f"output_{i}" for i in range(len(outputs))]
    return make_graph(nodes, [r.node for r in variables.values()], outputs, names, Header(opset=21))


def elements(graph: Graph) -> int:
    """How many numbers one evaluation compares."""
    kinds = [graph.type_of(ref) for ref in graph.outputs]
    return sum(prod(d for d in kind.shape or () if isinstance(d, int)) for kind in kinds if kind)
