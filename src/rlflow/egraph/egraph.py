"""An e-graph: many terms at once, with those that are known to be equal in one class (Willsey et al., egg, POPL 2021).

An e-node is an operator over classes of terms, so that an e-node over a class stands for one over each of its terms:

    left, right = graph.add(term), graph.add(other)
    graph.unite(left, right)                    # an equality that a rule gives
    graph.rebuild()                             # and those that follow by congruence

To decide if an equality follows from rules, both sides are added, classes that the rules equate are united
(`egraph/saturation.py`), and finally the sides are in one class or not.

Invariants, after `rebuild`: congruent e-nodes (the same operator over the same classes) are in one class, and every
class has one type, which is the type of all its terms.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from rlflow.egraph.union_find import UnionFind
from rlflow.errors import RuleError
from rlflow.ir.tensor_type import TensorType
from rlflow.ops import registry
from rlflow.rules.pattern import Term, Variable

ClassId = int


class ENode(NamedTuple):
    """One output of an operator applied to classes; in a graph, operands of a commutative operator are sorted."""

    op: str
    attributes: tuple[tuple[str, Any], ...]
    output: int
    children: tuple[ClassId, ...]


@lru_cache(maxsize=1 << 14)
def _inferred(
    op: str, attributes: tuple[tuple[str, Any], ...], operands: tuple[TensorType, ...]
) -> tuple[TensorType, ...]:
    """Infer types, and remember them: terms of one search are made of few operators over few types."""
    return registry.infer(op, dict(attributes), operands)


class EGraph(UnionFind):
    """Terms over variables of the given types.

    `unite` leaves congruence for later, and `nodes_by_operator` (operator -> class -> its e-nodes) as it was; `rebuild`
    brings both up to date.
    """

    def __init__(self, variables: Mapping[str, TensorType]) -> None:
        super().__init__()
        self.nodes_by_operator: Mapping[str, Mapping[ClassId, list[ENode]]] = {}
        self._variables = variables
        self._leaves: dict[str, ClassId] = {}
        self._classes: dict[ENode, ClassId] = {}
        self._types: list[TensorType] = []
        self._congruent = True

    def __len__(self) -> int:
        """Count the e-nodes; variables are none."""
        return len(self._classes)

    def copy(self) -> EGraph:
        """Return an equal graph that can be changed on its own."""
        twin = EGraph(self._variables)
        twin._leaves, twin._classes, twin._congruent = dict(self._leaves), dict(self._classes), self._congruent
        twin._parents, twin._types = list(self._parents), list(self._types)
        twin.nodes_by_operator = self.nodes_by_operator
        return twin

    def type_of(self, member: ClassId) -> TensorType:
        return self._types[member]

    def add(self, term: Term) -> ClassId:
        """Return the class of the term, a new one unless it is known; `TypeInferenceError` if it is not well typed."""
        if isinstance(term, Variable):
            if term.name not in self._leaves:
                self._leaves[term.name] = self._new_class(self._variables[term.name])
            return self.find(self._leaves[term.name])
        children = tuple(map(self.add, term.arguments))
        types = _inferred(term.op, term.attributes, tuple(self._types[child] for child in children))
        return self.insert(ENode(term.op, term.attributes, term.output, children), types[term.output])

    def insert(self, node: ENode, tensor_type: TensorType) -> ClassId:
        """Return the class of the node, a new one of this type unless the node is known."""
        node = self._canonical(node)
        known = self._classes.get(node)
        if known is None:
            known = self._classes[node] = self._new_class(tensor_type)
        return self.find(known)

    def lookup(self, term: Term) -> ClassId | None:
        """Return the class of the term, None if the term is not known."""
        if isinstance(term, Variable):
            leaf = self._leaves.get(term.name)
            return None if leaf is None else self.find(leaf)
        children = [child for child in map(self.lookup, term.arguments) if child is not None]
        if len(children) < len(term.arguments):
            return None
        found = self._classes.get(self._canonical(ENode(term.op, term.attributes, term.output, tuple(children))))
        return None if found is None else self.find(found)

    def unite(self, one: ClassId, other: ClassId) -> None:
        """Make two classes one; `RuleError` if their types differ."""
        one, other = sorted((self.find(one), self.find(other)))
        if one == other:
            return
        if self._types[one] != self._types[other]:
            raise RuleError(f"values of types {self._types[one]} and {self._types[other]} cannot be equal")
        self.join(one, other)
        self._congruent = False

    def rebuild(self) -> bool:
        """Close the graph under congruence and index its nodes; return True if any classes had been united.

        Nodes of one operator over equal operands are equal, which may make further nodes equal, until nothing changes.
        """
        changed = not self._congruent
        while not self._congruent:
            self._congruent = True
            classes: dict[ENode, ClassId] = {}
            for node, member in self._classes.items():
                # Nodes that have become the same node unite their classes, and need another round.
                self.unite(classes.setdefault(self._canonical(node), member), member)
            self._classes = classes

        index: dict[str, dict[ClassId, list[ENode]]] = {}
        for node, member in self._classes.items():
            index.setdefault(node.op, {}).setdefault(self.find(member), []).append(node)
        self.nodes_by_operator = index
        return changed

    def _new_class(self, tensor_type: TensorType) -> ClassId:
        self._types.append(tensor_type)
        return self.extend()

    def _canonical(self, node: ENode) -> ENode:
        children = tuple(map(self.find, node.children))
        if registry.OPERATORS[node.op].commutative:
            children = tuple(sorted(children))
        if children == node.children:
            return node
        return ENode(node.op, node.attributes, node.output, children)
