"""The places of a trajectory's steps: in the graph that it starts from, and in the one that it leads to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from rlflow.ir.graph import Graph
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import of_its_rules, recorded_match, replay


@dataclass(frozen=True)
class Place:
    """The place of a step, among the nodes that run.

    `before` are the numbers of the nodes of the first graph that it replaced, itself or in the form that earlier steps
    had given them. `after` are the nodes of the last graph that it made, or that later steps made of these, by their
    positions in `Graph.order`: a search may have met that graph on another way, which numbered its nodes otherwise.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]


def places(start: Graph, trajectory: Trajectory, rewriter: Rewriter) -> list[Place]:
    """Return the place of each step. `ReplayError` if the trajectory does not start from `start`."""
    rewriter, last = of_its_rules(trajectory, rewriter), start
    made_of: dict[int, frozenset[int]] = {}  # nodes that steps made: those of the first graph that they come from
    made_by: dict[int, frozenset[int]] = {}  # and the steps that they come from
    replaced = []
    walk = zip(pairwise(replay(start, trajectory, rewriter)), trajectory.steps, strict=True)
    for number, ((graph, last), step) in enumerate(walk):
        matched = recorded_match(graph, rewriter, step, number + 1).nodes
        origins = _union(made_of.get(node, frozenset([node])) for node in matched)
        steps = _union(made_by.get(node, frozenset()) for node in matched)
        replaced.append(origins)
        assert last.edit is not None, "a step edits the graph before it"
        for node in last.edit.change.added:
            made_of[node], made_by[node] = origins, steps | {number}

    left: dict[int, list[int]] = defaultdict(list)
    for place, node in enumerate(last.order):
        for number in made_by.get(node, ()):
            left[number].append(place)
    position = start.positions()
    return [
        Place(tuple(sorted(origins, key=position.__getitem__)), tuple(left[number]))
        for number, origins in enumerate(replaced)
    ]


def _union(sets: Iterable[frozenset[int]]) -> frozenset[int]:
    return frozenset().union(*sets)
