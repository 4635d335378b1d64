"""The e-graph of a model as a problem of extraction, and a solution of that problem as a model again.

    extraction = ModelProblem.of(egraph, NodePrices(AnalyticCost(), original.header))
    solution = ilp.extract(extraction.problem)
    graph = extraction.graph(solution, original)

Constants and inputs cost nothing and are no part of the problem; a graph gets the shortest expression of each constant
that it reads. Equal applications are one in an e-graph, and therefore in every graph that comes out of it.

Invariant: where a price is a sum over nodes, the graph costs what the solution says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from rlflow.egraph.egraph import ClassId, ENodeId
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.egraph.prices import NodePrice
from rlflow.egraph.problem import Choice, Problem, Solution
from rlflow.ir.depth_first import depth_first
from rlflow.ir.graph import Graph, make_graph
from rlflow.ir.node import INPUT, Node, Ref
from rlflow.ops import registry


@dataclass(frozen=True)
class ModelProblem:
    """The problem of extraction from an e-graph; `applications` names the application of each choice."""

    egraph: ModelEGraph
    problem: Problem
    applications: tuple[ENodeId, ...]

    @classmethod
    def of(cls, egraph: ModelEGraph, node_ms: NodePrice) -> ModelProblem:
        """Price all applications that run."""
        given = frozenset(c for c in egraph.classes() if given_form(egraph, c) is not None)
        read = frozenset(c for c in egraph.classes() if egraph.readers(c)).union(egraph.outputs) - given
        applications = tuple(a for a in egraph.applications() if not read.isdisjoint(_made(egraph, a)))
        generations = _generations(egraph)
        choices = (_choice(egraph, application, read, node_ms) for application in applications)
        ranked = (choice._replace(rank=generations[a]) for choice, a in zip(choices, applications, strict=True))
        return cls(egraph, Problem(tuple(ranked), egraph.outputs, given), applications)

    def without(self, applications: Collection[ENodeId]) -> ModelProblem:
        """Return the problem in which these applications cannot be chosen."""
        kept = [number for number, application in enumerate(self.applications) if application not in applications]
        choices = tuple(self.problem.choices[number] for number in kept)
        return replace(
            self,
            problem=replace(self.problem, choices=choices),
            applications=tuple(self.applications[number] for number in kept),
        )

    @cached_property
    def choice_of(self) -> Mapping[ENodeId, int]:
        """The choice of each application that runs."""
        return {application: number for number, application in enumerate(self.applications)}

    def solution(self, graph: Graph, class_of: Mapping[Ref, ClassId], method: str) -> Solution | None:
        """Return a graph of the e-graph as a solution, given the class of each of its values.

        None if the e-graph does not hold it, because some application was filtered out.
        """
        chosen: dict[ClassId, int] = {}
        for identifier in graph.order:
            node = graph.nodes[identifier]
            operands = [self.egraph.find(class_of[ref]) for ref in node.inputs if ref is not None]
            made = [self.egraph.find(class_of[Ref(identifier, place)]) for place in range(len(node.types))]
            number = self._number(node, operands, made)
            if number is not None:
                chosen |= {c: number for c in made if c not in chosen}
        return self.problem.solved(chosen, method) if self.problem.is_solution(chosen) else None

    def _number(self, node: Node, operands: Sequence[ClassId], made: Sequence[ClassId]) -> int | None:
        """Return the choice that is this node on these classes or stands in for it, None if there is none."""
        for member in self.egraph.members(made[0]):
            known = self.egraph.node(member)
            if known.node.signature == node.signature and _ordered(node, known.children) == _ordered(node, operands):
                return self.choice_of.get(self.egraph.application(member))
        filtered = self.egraph.known(node, operands)
        standing = None if filtered is None else self.egraph.standing(filtered)
        return None if standing is None else self.choice_of.get(standing)

    def chosen(self, solution: Solution) -> dict[ClassId, ENodeId]:
        """Return the application that a solution chose for each class that it needs."""
        return {current: self.applications[number] for current, number in solution.chosen.items()}

    def graph(self, solution: Solution, original: Graph) -> Graph:
        """Return the graph of a solution, with the interface and header of the graph that the e-graph began with."""
        draft = _Draft(self.egraph, original)
        applications = [self.applications[number] for number in solution.choices]
        draft.place_constants([*self.problem.roots, *(c for a in applications for c in self.egraph.children(a))])
        for current, number in solution.chosen.items():
            draft.place(current, self.applications[number])
        outputs = [draft.values[c] for c in self.problem.roots]
        return make_graph(
            draft.nodes, tuple(range(len(original.inputs))), outputs, original.output_names, original.header
        )


class _Draft:
    """A graph that is being built, with the value that stands for each class so far."""

    def __init__(self, egraph: ModelEGraph, original: Graph) -> None:
        self.egraph = egraph
        self.nodes = {place: original.nodes[identifier] for place, identifier in enumerate(original.inputs)}
        self.values: dict[ClassId, Ref] = {}
        self._placed: dict[ENodeId, int] = {}
        for place, identifier in enumerate(original.inputs):
            self.values.setdefault(egraph.find(egraph.class_of[Ref(identifier)]), Ref(place))

    def place(self, current: ClassId, application: ENodeId) -> None:
        """Let an application make the value of a class; its operands have theirs."""
        if application not in self._placed:
            self._placed[application] = len(self.nodes)
            node = self.egraph.node(application).node
            operands = iter(self.egraph.children(application))
            inputs = tuple(None if ref is None else self.values[next(operands)] for ref in node.inputs)
            self.nodes[len(self.nodes)] = node.with_inputs(inputs)
        outputs = [self.egraph.find(number) for number in self.egraph.outputs_of(application)]
        self.values[current] = Ref(self._placed[application], outputs.index(current))

    def place_constants(self, classes: Iterable[ClassId]) -> None:
        """Place the shortest expressions of those of the classes that are constant."""
        roots = [c for c in dict.fromkeys(classes) if self.egraph.is_constant(c) and c not in self.values]
        for current in depth_first(roots, self._constant_operands, max(self.egraph.classes()) + 1).nodes:
            self.place(current, self._constant_application(current))

    def _constant_operands(self, current: ClassId) -> list[ClassId]:
        operands = self.egraph.children(self._constant_application(current))
        return [c for c in dict.fromkeys(operands) if c not in self.values]

    def _constant_application(self, current: ClassId) -> ENodeId:
        return self.egraph.application(self.egraph.constant_form(current))


def given_form(egraph: ModelEGraph, current: ClassId) -> ENodeId | None:
    """Return the e-node of a class that costs nothing: its shortest constant, or the input; None if it has neither."""
    if egraph.is_constant(current):
        return egraph.constant_form(current)
    return next((number for number in egraph.members(current) if egraph.node(number).node.op == INPUT), None)


def _made(egraph: ModelEGraph, application: ENodeId) -> tuple[ClassId, ...]:
    return tuple(egraph.find(number) for number in egraph.outputs_of(application))


def _generations(egraph: ModelEGraph) -> dict[ENodeId, int]:
    """Return how many uses of rules led to each application, one after another; 0 for those of the model.

    Of equal graphs, the one to which fewer uses lead is realised more easily.
    """
    generations = dict.fromkeys(map(egraph.application, egraph.class_of.values()), 0)
    for use in egraph.uses:
        here = 1 + max((generations.get(egraph.application(a), 0) for a in use.source), default=0)
        for made in map(egraph.application, use.made):
            generations.setdefault(made, here)
    return generations


def _choice(egraph: ModelEGraph, application: ENodeId, read: Collection[ClassId], node_ms: NodePrice) -> Choice:
    """Price an application; of its outputs, those count that something reads."""
    operands = egraph.children(application)
    price_ms = node_ms(egraph.node(application).node, [egraph.type_of(c) for c in operands])
    return Choice(price_ms, tuple(c if c in read else None for c in _made(egraph, application)), operands)


def _ordered(node: Node, operands: Sequence[ClassId]) -> list[ClassId]:
    """Return the operands of a node in an order that is the same if the node computes the same."""
    operator = registry.OPERATORS.get(node.op)
    return sorted(operands) if operator is not None and operator.commutative else list(operands)
