"""Constant analysis of an e-graph: equalities that hold because of the values of constants, as matmul(a, I) = a.

Each is a statement about some classes of an e-graph at their shapes, and is tested over the finite field before it may
derive anything (`rules/verification/verify.py` says with what certainty):

- A term of constants alone has a value. Two terms of one value are equal, and one that Relu does not change equals its
  Relu.
- An operator applied to one class and to constants is a function of that class, and so are two such operators in turn,
  if a constant takes part. A function that agrees with the class itself, or with another function of it, at random
  points is equal to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from rlflow.egraph.egraph import ClassId, ENode, Target
from rlflow.egraph.saturation import Equality
from rlflow.egraph.term_egraph import TermEGraph
from rlflow.ir.node import Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.ops.domain import Array
from rlflow.ops.field import FieldArray, FieldDomain
from rlflow.rules.pattern import Variable
from rlflow.synthesis.taso.equation_instances import Constant

_TRIALS = 16
"""Points at which functions must agree in every element; a point tells two signs apart with probability one half."""

_SAME_CLASS = Target((), (Ref(0),))


@dataclass(frozen=True)
class Value:
    """An array over the field, with a mark that is equal for equal arrays only."""

    array: Array = field(compare=False)
    mark: tuple[tuple[int, ...], bytes]

    @classmethod
    def of(cls, array: FieldArray) -> Value:
        """Mark an array by its shape and its elements at all points."""
        seen = np.broadcast_to(array.marked, (_TRIALS, *array.shape))
        return cls(array, (array.shape, seen.tobytes()))


@dataclass(frozen=True)
class Function:
    """A function of the class `argument`: its value at random points, and if a constant takes part in it."""

    argument: ClassId
    value: Value
    constant: bool


class ConstantAnalysis:
    """A source of equalities that follow from these constants, which an e-graph has as variables of these names."""

    def __init__(self, constants: Mapping[str, Constant], seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._domain = FieldDomain(seeds=self._rng.integers(1 << 62, size=_TRIALS).tolist())
        self._constants = {name: Value.of(constant.value(self._domain)) for name, constant in constants.items()}
        self._points: dict[TensorType, Value] = {}
        self._computed: dict[tuple[object, ...], Value] = {}

    def equalities(self, graph: TermEGraph) -> Iterator[Equality]:
        """Yield classes, each with a class that it was found to equal."""
        nodes = [
            (node, owner)
            for members in graph.nodes_by_operator.values()
            for owner, found in members.items()
            for node in found
        ]
        values = self._values(graph, nodes)

        first: dict[object, ClassId] = {}
        for owner, value in values.items():
            yield Equality((owner,), (first.setdefault(value.mark, owner),), _SAME_CLASS)
            relu = registry.apply("Relu", {}, [(Ref(0), graph.fact(owner), False)])
            if relu.op in graph.nodes_by_operator and self._result(relu, 0, [value]).mark == value.mark:
                yield Equality((owner,), (owner,), Target((relu,), (Ref(1),)))

        # The identity counts as a function of its class, so that others may equal it.
        for owner, function in self._functions(graph, nodes, values):
            argument = function.argument
            first.setdefault((argument, self._point(graph.fact(argument)).mark), argument)
            yield Equality((owner,), (first.setdefault((argument, function.value.mark), owner),), _SAME_CLASS)

    def _functions(
        self, graph: TermEGraph, nodes: Sequence[tuple[ENode, ClassId]], values: Mapping[ClassId, Value]
    ) -> Iterator[tuple[ClassId, Function]]:
        """Yield all functions of one class, each with the class that it is in."""
        applied: list[tuple[ENode, ClassId, ClassId]] = []
        for node, owner in nodes:
            arguments = {*node.children} - values.keys()
            if len(arguments) == 1:
                applied.append((node, owner, arguments.pop()))

        simple: dict[ClassId, dict[Function, None]] = defaultdict(dict)  # a dict as an ordered set
        for node, owner, argument in applied:
            point = Function(argument, self._point(graph.fact(argument)), constant=False)
            simple[owner][self._applied(node, point, values)] = None
        yield from ((owner, function) for owner, functions in simple.items() for function in functions)

        for node, owner, argument in applied:
            for inner in simple.get(argument, ()):
                outer = self._applied(node, inner, values)
                if outer.constant:
                    yield owner, outer

    def _applied(self, node: ENode, inner: Function, values: Mapping[ClassId, Value]) -> Function:
        """Return the function that applies the node's operator to `inner` and to constants."""
        result = self._result(node.node, node.output, [values.get(child, inner.value) for child in node.children])
        return Function(inner.argument, result, inner.constant or not values.keys().isdisjoint(node.children))

    def _values(self, graph: TermEGraph, nodes: Sequence[tuple[ENode, ClassId]]) -> dict[ClassId, Value]:
        """Compute the values of all classes that have a term of constants alone."""
        leaves = {graph.lookup(Variable(name)): value for name, value in self._constants.items()}
        values = {leaf: value for leaf, value in leaves.items() if leaf is not None}

        found = True
        while found:
            new = [(n, o) for n, o in nodes if o not in values and all(child in values for child in n.children)]
            values |= {o: self._result(n.node, n.output, [values[child] for child in n.children]) for n, o in new}
            found = bool(new)
        return values

    def _point(self, tensor_type: TensorType) -> Value:
        """Return the random points at which functions of a tensor of this type are compared."""
        if tensor_type not in self._points:
            shape = tuple(d for d in tensor_type.shape or () if isinstance(d, int))
            self._points[tensor_type] = Value.of(self._domain.draw(shape, self._rng))
        return self._points[tensor_type]

    def _result(self, node: Node, output: int, operands: Sequence[Value]) -> Value:
        key = (node.signature, output, *(operand.mark for operand in operands))
        if key not in self._computed:
            arrays = [operand.array for operand in operands]
            results = registry.OPERATORS[node.op].evaluate(self._domain, node.attributes, arrays)
            self._computed[key] = Value.of(results[output])
        return self._computed[key]
