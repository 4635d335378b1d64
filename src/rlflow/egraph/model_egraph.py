"""The e-graph of a whole model: all graphs at once that rules have shown to be equal to it, and by which uses of them.

    egraph = ModelEGraph.from_graph(graph)
    egraph.use(rule, source, roots, variables, target)
    egraph.rebuild()

By following in each constant class the e-node that `constant_form` names, one comes to stored weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rlflow.egraph.constants import Constants, Value, depth_over
from rlflow.egraph.egraph import ClassId, EGraph, ENodeId, Target
from rlflow.ir.depth_first import depth_first
from rlflow.ir.graph import Graph
from rlflow.ir.node import WEIGHT, Ref
from rlflow.ir.tensor_type import TensorType
from rlflow.rules.rule import Rule


class Use(NamedTuple):
    """One use of a rule.

    `source` are the applications that those of the rule's source matched, each once and in the order in which a walk
    down from its outputs meets them; `roots` the e-nodes of its outputs. `made` are the applications of the target, new
    or there before, operands first; `outputs` the classes of its outputs, which were united with those of the roots.
    """

    rule: Rule
    source: tuple[ENodeId, ...]
    roots: tuple[ENodeId, ...]
    variables: Mapping[str, ClassId]
    made: tuple[ENodeId, ...]
    outputs: tuple[ClassId, ...]


class ModelEGraph(EGraph[Value]):
    """An e-graph that begins with the values of a model; `class_of` has their e-nodes, which stand for their classes.

    `uses` has every use of a rule that brought anything new, in the order of time; `idle_uses` has the others, which
    lead from one e-node to another as well.
    """

    def __init__(self) -> None:
        super().__init__(Constants())
        self.class_of: dict[Ref, ClassId] = {}
        self.uses: list[Use] = []
        self.idle_uses: list[Use] = []
        self._outputs: tuple[ClassId, ...] = ()

    @classmethod
    def from_graph(cls, graph: Graph) -> ModelEGraph:
        """Make an e-graph of all values of a graph; weights of the same content become one."""
        egraph = cls()
        for identifier in graph.inputs:
            egraph._take(graph, identifier)
        roots = [ref.node for ref in graph.outputs]
        for identifier in depth_first(roots, lambda i: graph.nodes[i].sources, graph.next_id).nodes:
            if Ref(identifier) not in egraph.class_of:
                egraph._take(graph, identifier)
        egraph._outputs = tuple(egraph.class_of[ref] for ref in graph.outputs)
        return egraph

    @property
    def outputs(self) -> tuple[ClassId, ...]:
        """The classes of the model's outputs."""
        return tuple(map(self.find, self._outputs))

    def type_of(self, member: ClassId) -> TensorType | None:
        return self.fact(member).type

    def is_constant(self, member: ClassId) -> bool:
        """Return True if the value is known when the model is loaded."""
        return self.fact(member).depth is not None

    def constant_depth(self, member: ClassId) -> int:
        """Return how many applications deep a constant is at the least; 0 for a stored one. -1 if it is none."""
        depth = self.fact(member).depth
        return -1 if depth is None else depth

    def constant_form(self, member: ClassId) -> ENodeId:
        """Return the e-node of a constant class that is the least deep, the first of several."""
        constants = [number for number in self.members(member) if self.node(number).node.constant]
        return min(constants, key=lambda number: depth_over(list(map(self.fact, self.children(number)))))

    def number(self, member: ClassId) -> float | None:
        """Return the value of a constant of one element, None if it is none or is not known."""
        return self.fact(member).number

    def stored_number(self, member: ClassId) -> float | None:
        """Return the number of a class that has a stored weight of one element, None for others."""
        is_stored = any(self.node(number).node.op == WEIGHT for number in self.members(member))
        return self.number(member) if is_stored else None

    def use(
        self,
        rule: Rule,
        source: Sequence[ENodeId],
        roots: Sequence[ENodeId],
        variables: Mapping[str, ClassId],
        target: Target,
    ) -> Use | None:
        """Add a rule's target and unite its outputs with the roots; None if all that was known before."""
        size = self.next_number
        made, outputs = self.place(target, list(variables.values()))
        united = [self.unite(root, output) for root, output in zip(roots, outputs, strict=True)]
        use = Use(rule, tuple(source), tuple(roots), dict(variables), tuple(made), tuple(outputs))
        if not any(united) and self.next_number == size:
            self.idle_uses.append(use)
            return None
        self.uses.append(use)
        return use

    def _take(self, graph: Graph, identifier: int) -> None:
        """Add a node of a graph whose operands have been added."""
        node = graph.nodes[identifier]
        first = self.insert(node, [self.class_of[ref] for ref in node.inputs if ref is not None])
        self.class_of |= {Ref(identifier, place): first + place for place in range(len(node.types))}
