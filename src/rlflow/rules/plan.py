"""A rule's two sides as typed operators in order: what the matcher, the verifier and the e-graph compute with.

The terms `MatMul(Transpose(x), w)` and an `Instance`, which gives x and w their types, make a `Plan` of two steps: one
that applies Transpose to variable 0 and one that applies MatMul to that and variable 1. Common subterms are one step.
A plan exists only where every step is well typed, and never names a value: it can be run on any operands of its types.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from rlflow.errors import TypeInferenceError
from rlflow.ir.node import Attributes, AttributeValue, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.ops.algebra import QUANTISED
from rlflow.ops.domain import Array, Domain
from rlflow.rules import pattern
from rlflow.rules.expression import Expression, Scope, Unproven, evaluate
from rlflow.rules.pattern import Apply, Term, Variable


@dataclass(frozen=True)
class Instance:
    """A choice of shapes, attributes and indices for which the source is well typed; `bounded` as in a `Scope`."""

    types: Mapping[str, TensorType]
    attributes: Mapping[str, AttributeValue]
    literals: Mapping[str, float]
    indices: Mapping[str, np.ndarray] = field(default_factory=dict)
    bounded: Container[str] = ()

    @property
    def scope(self) -> Scope:
        return Scope(self.types, self.attributes, self.literals, self.bounded)

    @property
    def key(self) -> Hashable:
        """Equal for instances of one rule that have the same types and attributes."""
        return *self.types.values(), *self.attributes.values()

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(d for d in self.types[name].shape or () if isinstance(d, int))

    def given(self, name: str) -> np.ndarray | None:
        """The value of a literal or of indices, in the variable's shape; None where any value will do."""
        if name in self.literals and name not in self.indices:
            return np.full(self.shape(name), self.literals[name], np.float32)
        return self.indices.get(name)

    def elements(self, name: str, numbers: np.ndarray) -> np.ndarray:
        """Numbers of a magnitude of about one as elements of a variable: float32, or, where it holds quantised numbers,
        such as fill their range.
        """
        dtype = self.types[name].dtype
        if dtype not in QUANTISED:
            return numbers.astype(np.float32)
        low, high = QUANTISED[dtype]
        middle, half = (low + high) / 2, (high - low) / 2
        return np.rint(middle + half * np.clip(np.nan_to_num(numbers) / 2, -1, 1)).astype(dtype)


class Step(NamedTuple):
    """One operator of a side. A `Ref.node` counts the variables first, in the order of the instance, then the
    steps.
    """

    op: str
    attributes: Attributes
    inputs: tuple[Ref, ...]
    types: tuple[TensorType, ...]


class Plan(NamedTuple):
    """One side of a rule at an instance, operands first, common subterms once."""

    steps: tuple[Step, ...]
    outputs: tuple[Ref, ...]
    types: tuple[TensorType, ...]


def plan_or_none(layout: Layout, instance: Instance) -> Plan | None:
    try:
        return layout.plan(instance)
    except (TypeInferenceError, Unproven):
        return None


def plan_of(terms: tuple[Term, ...], instance: Instance) -> Plan:
    """`TypeInferenceError` if a term is not well typed, `Unproven` if an attribute cannot be computed."""
    return layout(terms, tuple(instance.types)).plan(instance)


def output_type(types: Sequence[tuple[TensorType, ...]], ref: Ref) -> TensorType:
    if ref.index >= len(types[ref.node]):
        raise TypeInferenceError(f"an operator of {len(types[ref.node])} outputs has no output {ref.index}")
    return types[ref.node][ref.index]


class Application(NamedTuple):
    """An operator of a side, with the attributes that are the same everywhere, and those to be computed."""

    op: str
    attributes: dict[str, AttributeValue]
    computed: tuple[tuple[str, Expression], ...]
    inputs: tuple[Ref, ...]


@dataclass(frozen=True)
class Layout:
    """The operators of a side, operands first, and where its outputs are."""

    applications: tuple[Application, ...]
    outputs: tuple[Ref, ...]

    def plan(self, instance: Instance) -> Plan:
        """`TypeInferenceError` if a term is not well typed, `Unproven` if an attribute cannot be computed."""
        scope = instance.scope
        types: list[tuple[TensorType, ...]] = [(tensor_type,) for tensor_type in instance.types.values()]
        steps = []
        for op, attributes, computed, inputs in self.applications:
            if computed:
                attributes = attributes | {name: evaluate(value, scope) for name, value in computed}
            result = registry.infer(op, attributes, [output_type(types, r) for r in inputs])
            steps.append(Step(op, attributes, inputs, result))
            types.append(result)
        return Plan(tuple(steps), self.outputs, tuple(output_type(types, r) for r in self.outputs))


@lru_cache(maxsize=1024)
def layout(terms: tuple[Term, ...], variables: tuple[str, ...]) -> Layout:
    places: dict[Term, int] = {Variable(name): place for place, name in enumerate(variables)}
    applications: list[Application] = []

    def place(term: Term) -> Ref:
        if isinstance(term, Variable):
            return Ref(places[term])
        if term.node not in places:
            inputs = tuple(place(a) for a in term.arguments)
            applications.append(_application(term, inputs))
            places[term.node] = len(places)
        return Ref(places[term.node], term.output)

    outputs = tuple(place(t) for t in terms)
    return Layout(tuple(applications), outputs)


def _application(term: Apply, inputs: tuple[Ref, ...]) -> Application:
    literal = {name: value for name, value in term.attributes if not pattern.is_computed(value)}
    computed = tuple((name, pattern.thaw(value)) for name, value in term.attributes if name not in literal)
    return Application(term.op, literal, computed, inputs)


def run_plan(plan: Plan, operands: Sequence[Array], domain: Domain) -> list[Array]:
    """The outputs, given the variables' values in the order of the instance."""
    values: list[Sequence[Array]] = [(operand,) for operand in operands]
    for step in plan.steps:
        arguments = [values[r.node][r.index] for r in step.inputs]
        values.append(registry.OPERATORS[step.op].evaluate(domain, step.attributes, arguments))
    return [values[r.node][r.index] for r in plan.outputs]
