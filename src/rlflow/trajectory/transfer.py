"""Taking the steps of a trajectory on another graph of the same model, about which less is taken for granted."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Location, Rewriter
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import recorded_match, replay


@dataclass(frozen=True)
class Transfer:
    """`trajectory` leads to `last` by the steps that could be taken. `refused` are the ids of the rules of the others,
    of which some may only want what an earlier one would have made.
    """

    last: Graph
    trajectory: Trajectory
    refused: tuple[str, ...]


def transferred(start: Graph, trajectory: Trajectory, onto: Graph, rewriter: Rewriter) -> Transfer:
    """The steps of a trajectory from `start` taken from `onto`, whose nodes have the numbers that they have in `start`.

    A step is the same if it is of the same rule, replaces the same values and binds the same values. All steps go
    through the rewriter: what it admits is right for the graph, whatever it was found on. The prices are those of the
    trajectory. `ReplayError` if it does not start from `start`.
    """
    steps, refused = [], list[str]()
    graph = onto
    walk = zip(pairwise(replay(start, trajectory, rewriter)), trajectory.steps, strict=True)
    for number, ((before, after), step) in enumerate(walk, start=1):
        wanted = recorded_match(before, rewriter, step, number)
        place = _same_place(graph, wanted, rewriter)
        if place is None:
            refused.append(step.rule)
            graph = replace(graph, next_id=max(graph.next_id, after.next_id))  # what follows keeps its numbers
            continue
        graph = rewriter.apply(graph, rewriter.matches(graph)[place.rule][place.location])
        steps.append(replace(step, location=place.location, hash=structural_hash(graph)))
    moved = replace(trajectory, start_hash=structural_hash(onto), steps=tuple(steps))
    return Transfer(graph, moved, tuple(refused))


def _same_place(graph: Graph, wanted: Match, rewriter: Rewriter) -> Location | None:
    """Where the rewriter finds the wanted match in this graph, if it does."""
    rule = rewriter.rules.index(wanted.rule)
    for location, match in enumerate(rewriter.matches(graph)[rule]):
        if match.roots == wanted.roots and match.bindings == wanted.bindings:
            return Location(rule, location)
    return None
