"""The e-graph of terms over typed variables, in which equalities of rules' sides are proved.

    graph = TermEGraph({"x": matrix})
    left, right = graph.add(parse(["Relu", ["Relu", "x"]])), graph.add(parse(["Relu", "x"]))

To decide if an equality follows from rules, both sides are added, classes that the rules equate are united
(`egraph/saturation.py`), and finally the sides are in one class or not. A variable is an input; nothing is constant.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import cast

from rlflow.egraph.egraph import ClassId, EGraph, ENode, check_equal_types
from rlflow.errors import TypeInferenceError
from rlflow.ir.node import INPUT, AttributeValue, Node, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.rules.pattern import Apply, Term, Variable


class _Types:
    """The analysis of types alone."""

    def make(self, node: Node, operands: Sequence[TensorType]) -> tuple[Node, Sequence[TensorType]]:
        return node, cast(tuple[TensorType, ...], node.types)  # operators of rules give tensors

    def merge(self, one: TensorType, other: TensorType) -> TensorType:
        check_equal_types(one, other)
        return one


@lru_cache(maxsize=1 << 14)
def _application(op: str, attributes: tuple[tuple[str, AttributeValue], ...], operands: tuple[TensorType, ...]) -> Node:
    """Return an operator on operands of these types: terms of one search are made of few operators over few types.

    `TypeInferenceError` if that is not well typed.
    """
    return registry.apply(op, dict(attributes), [(Ref(i), t, False) for i, t in enumerate(operands)])


class TermEGraph(EGraph[TensorType]):
    """Terms over variables of the given types."""

    def __init__(self, variables: Mapping[str, TensorType]) -> None:
        super().__init__(_Types())
        self._variables = variables
        self._leaves: dict[str, ClassId] = {}
        self._index: dict[str, dict[ClassId, list[ENode]]] | None = None

    def add(self, term: Term) -> ClassId:
        """Return the class of the term, a new one unless it is known; `TypeInferenceError` if it is not well typed."""
        if isinstance(term, Variable):
            if term.name not in self._leaves:
                self._leaves[term.name] = self.insert(Node(INPUT, (), {}, (self._variables[term.name],), ("",)), ())
            return self.find(self._leaves[term.name])
        children = list(map(self.add, term.arguments))
        return self.find(self.insert(self._node(term, children), children) + term.output)

    def lookup(self, term: Term) -> ClassId | None:
        """Return the class of the term, None if the term is not known."""
        if isinstance(term, Variable):
            leaf = self._leaves.get(term.name)
            return None if leaf is None else self.find(leaf)
        children = [child for child in map(self.lookup, term.arguments) if child is not None]
        if len(children) < len(term.arguments):
            return None
        try:
            found = self.known(self._node(term, children), children)
        except TypeInferenceError:
            return None
        return None if found is None else self.find(found + term.output)

    def rebuild(self) -> tuple[ClassId, ...]:
        """Close the graph under congruence; return the classes that have changed since the last time."""
        self._index = None
        return super().rebuild()

    @property
    def nodes_by_operator(self) -> Mapping[str, Mapping[ClassId, list[ENode]]]:
        """The e-nodes by operator and class, inputs left out, as they were when first asked for after a rebuild.

        So matches can be found one by one while those found before change the graph.
        """
        if self._index is None:
            self._index = {}
            for application in self.applications():
                # After a rebuild, children are kept under the names of their classes.
                node, children = self._nodes[application], self._children[application]
                if node.op != INPUT:
                    of_operator = self._index.setdefault(node.op, {})
                    for output, number in enumerate(self.outputs_of(application)):
                        of_operator.setdefault(self.find(number), []).append(ENode(node, output, children))
        return self._index

    def _node(self, term: Apply, children: Sequence[ClassId]) -> Node:
        return _application(term.op, term.attributes, tuple(map(self.fact, children)))
