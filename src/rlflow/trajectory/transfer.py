"""Take the steps of a trajectory on another graph of the same model, about which less is known.

A model is searched at given sizes and then rewritten with its dimensions dynamic, where some steps no longer apply.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Location, Rewriter
from rlflow.trajectory.record import Step, Trajectory
from rlflow.trajectory.replay import recorded_match, replay


@dataclass(frozen=True)
class Transfer:
    """The steps that could be taken, as a trajectory that leads to `last`.

    refused: the rule ids of the other steps, some of which may only lack what an earlier one would have made.
    """

    last: Graph
    trajectory: Trajectory
    refused: tuple[str, ...]


def transferred(start: Graph, trajectory: Trajectory, onto: Graph, rewriter: Rewriter) -> Transfer:
    """Take the steps of a trajectory from `start` on `onto`, whose nodes have the same numbers as in `start`.

    A step is the same if it applies the same rule, replaces the same values and binds the same values. Every step goes
    through the rewriter, so what is taken is right for `onto`, whatever graph it was found on. The prices are those of
    the trajectory. `ReplayError` if it does not start from `start`.
    """
    last, steps, refused = onto, list[Step](), list[str]()
    walk = steps_taken(start, trajectory, onto, rewriter, rewriter)
    for wanted, (step, graph) in zip(trajectory.steps, walk, strict=True):
        last = graph
        if step is None:
            refused.append(wanted.rule)
        else:
            steps.append(step)
    moved = replace(trajectory, start_hash=structural_hash(onto), steps=tuple(steps))
    return Transfer(last, moved, tuple(refused))


class Taken(NamedTuple):
    """A step as it was taken on the other graph, None if it was refused, and that graph afterwards."""

    step: Step | None
    graph: Graph


def steps_taken(
    start: Graph,
    trajectory: Trajectory,
    onto: Graph,
    rewriter: Rewriter,
    taker: Rewriter,
    without: Collection[str] = (),
) -> Iterator[Taken]:
    """Take the steps one by one, as `transferred` does; those by rules of the ids `without` are refused.

    `taker` takes those that `rewriter` recorded: so a trajectory of private matching becomes one of sharing matching.
    """
    graph = onto
    walk = zip(pairwise(replay(start, trajectory, rewriter)), trajectory.steps, strict=True)
    for number, ((before, after), step) in enumerate(walk, start=1):
        wanted = recorded_match(before, rewriter, step, number)
        place = None if step.rule in without else _same_place(graph, wanted, taker)
        if place is None:
            # Later steps name nodes by number, so the numbers that this step would have used stay unused.
            graph = replace(graph, next_id=max(graph.next_id, after.next_id))
            yield Taken(None, graph)
            continue

        graph = taker.apply(graph, taker.matches(graph)[place.rule][place.location])
        yield Taken(replace(step, location=place.location, hash=structural_hash(graph)), graph)


def _same_place(graph: Graph, wanted: Match, rewriter: Rewriter) -> Location | None:
    """The location at which the rewriter finds the wanted match in this graph; None if it does not."""
    rule = rewriter.rules.index(wanted.rule)
    for location, match in enumerate(rewriter.matches(graph)[rule]):
        if match.roots == wanted.roots and match.bindings == wanted.bindings:
            return Location(rule, location)
    return None
