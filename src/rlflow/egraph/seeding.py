"""The steps of a trajectory, taken in an e-graph: the values of every graph on the way join it, with their provenance.

Each step is one use of a rule, with the nodes that its match has in the graph before it. As an edit keeps the numbers
of all nodes that it leaves, or that merely read something else that is equal, a number means the same class in every
graph on the way.
"""

from __future__ import annotations

from rlflow.egraph.egraph import ClassId
from rlflow.egraph.matching import target_of
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.ir.graph import Graph
from rlflow.ir.node import Ref
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import recorded_match


def replay_into(
    egraph: ModelEGraph, graph: Graph, trajectory: Trajectory, rewriter: Rewriter
) -> tuple[Graph, dict[Ref, ClassId]]:
    """Add the graphs along a trajectory from `graph`; return the last, and the classes of the values of all of them.

    The last is numbered as the steps number it here, which need not be as where they were recorded.

    `egraph` must have begun with `graph`. Raises `ReplayError` if a step is not possible.
    """
    classes = dict(egraph.class_of)
    for number, step in enumerate(trajectory.steps, start=1):
        match = recorded_match(graph, rewriter, step, number)
        _use(egraph, classes, match)
        graph = rewriter.apply(graph, match)
        for identifier in graph.edit.change.added if graph.edit else ():
            node = graph.nodes[identifier]
            first = egraph.insert(node, [classes[ref] for ref in node.inputs if ref is not None])
            classes |= {Ref(identifier, place): first + place for place in range(len(node.types))}
        egraph.rebuild()
    return graph, classes


def _use(egraph: ModelEGraph, classes: dict[Ref, ClassId], match: Match) -> None:
    """Use a match of a graph whose values are in these classes."""
    names = tuple(match.bindings)
    egraph.use(
        match.rule,
        [egraph.application(classes[Ref(node)]) for node in match.source],
        [classes[root] for root in match.roots],
        {name: egraph.find(classes[match.bindings[name]]) for name in names},
        target_of(match.replacement, names),
    )
