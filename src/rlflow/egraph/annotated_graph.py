"""A graph on its way through an e-graph: each node with the application that it is, and what became of old values.

    place = AnnotatedGraph.begin(graph, egraph)          # the graph with which the e-graph began
    place.member(Ref(7))                                 # the e-node that value 7 is
    after = place.taken(rewriter, location, match)       # one rewrite on
    after.value(Ref(7))                                  # what is read in place of value 7 now

A rewrite never takes a value out of its class, so that only the nodes that it adds have to be looked up. One that the
e-graph does not have, being redundant (`egraph/redundant.py`), is taken for the one that stayed, given the use of a
rule that the rewrite is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from immutables import Map

from rlflow.egraph.egraph import ClassId, ENodeId
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.ir.graph import Graph
from rlflow.ir.node import Node, Ref
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Location
from rlflow.rules.matching.sharing import SharingRewriter

Step = tuple[Location, Graph]
"""A rewrite, and the graph after it."""


@dataclass(frozen=True, eq=False)
class AnnotatedGraph:
    """A graph, the application that each of its nodes is, what replaced old values, and how it was reached."""

    graph: Graph
    egraph: ModelEGraph
    applications: Map[int, ENodeId]
    now: Map[Ref, Ref]
    before: AnnotatedGraph | None = None
    location: Location | None = None

    @classmethod
    def begin(cls, graph: Graph, egraph: ModelEGraph) -> AnnotatedGraph:
        """Annotate the graph with which the e-graph began."""
        applications = {ref.node: egraph.application(number) for ref, number in egraph.class_of.items()}
        return cls(graph, egraph, Map(applications), Map())

    @property
    def steps(self) -> tuple[Step, ...]:
        """The rewrites from the first graph to this one."""
        backwards = list[Step]()
        place = self
        while place.before is not None and place.location is not None:
            backwards.append((place.location, place.graph))
            place = place.before
        return tuple(reversed(backwards))

    def value(self, ref: Ref) -> Ref:
        """Return what is read now in place of a value of this graph or one before it."""
        while ref in self.now:
            ref = self.now[ref]
        return ref

    def member(self, ref: Ref) -> ENodeId:
        """Return the e-node that a value is."""
        return self.egraph.find_node(self.applications[ref.node] + ref.index)

    def class_of(self, ref: Ref) -> ClassId:
        return self.egraph.find(self.applications[ref.node] + ref.index)

    def runs(self, ref: Ref) -> bool:
        """Return True if a value is computed; one that nobody reads any more may be gone."""
        return ref.node in self.graph.nodes and not self.graph.nodes[ref.node].constant

    def values(self) -> Iterator[Ref]:
        """Yield all values that are computed and read, readers before operands."""
        graph = self.graph
        for identifier in reversed(graph.order):
            outputs = [Ref(identifier, index) for index in range(len(graph.nodes[identifier].types))]
            readers = [graph.nodes[reader] for reader in graph.consumers[identifier]] if len(outputs) > 1 else []
            for ref in outputs:
                if len(outputs) == 1 or ref in graph.outputs or any(ref in reader.inputs for reader in readers):
                    yield ref

    def operands(self, value: Ref) -> list[Ref]:
        """Return the operands of a value's node that are no constants; none of a value that is gone."""
        inputs = self.graph.nodes[value.node].inputs if self.runs(value) else ()
        return [ref for ref in inputs if ref is not None and self.runs(ref)]

    def taken(
        self, rewriter: SharingRewriter, location: Location, match: Match, made: Sequence[ENodeId] = ()
    ) -> AnnotatedGraph | None:
        """Take a step, of which the e-graph holds the applications `made`; None if it leads out of the e-graph."""
        _, substitution = rewriter.edit(self.graph, match)
        graph = rewriter.apply(self.graph, match)
        applications = self.applications.mutate()
        for identifier in graph.edit.change.added if graph.edit else ():
            node = graph.nodes[identifier]
            operands = [applications[ref.node] + ref.index for ref in node.inputs if ref is not None]
            application = self._application(node, operands, made)
            if application is None:
                return None
            applications[identifier] = application
        now = self.now.mutate()
        for old, new in substitution.items():
            now[old] = new
            now.pop(new, None)
        return AnnotatedGraph(graph, self.egraph, applications.finish(), now.finish(), self, location)

    def _application(self, node: Node, operands: Sequence[ENodeId], made: Sequence[ENodeId]) -> ENodeId | None:
        """Return the application of a node to these operands, or what stands in for it; None if neither exists."""
        known = self.egraph.known(node, operands)
        if known is not None:
            return known
        wanted = [self._but_for_constants(c) for c in operands]
        for number in made:
            application = self.egraph.application(number)
            if self.egraph.node(application).node.signature == node.signature:
                if [self._but_for_constants(c) for c in self.egraph.children(application)] == wanted:
                    return application
        return None

    def _but_for_constants(self, member: ClassId) -> ClassId | None:
        return None if self.egraph.is_constant(member) else self.egraph.find(member)
