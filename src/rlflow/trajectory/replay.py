"""Replay a trajectory, step by step, on the graph that it started from."""

from __future__ import annotations

from collections.abc import Iterator

from rlflow.errors import ReplayError
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.sharing import rewriter_of
from rlflow.trajectory.record import Step, Trajectory


def replay(graph: Graph, trajectory: Trajectory, rewriter: Rewriter) -> Iterator[Graph]:
    """The graphs along the trajectory, the start first.

    `ReplayError` naming the step if the graph, the rules or a hash are not what was recorded.
    """
    if trajectory.matching != rewriter.matching:
        raise ReplayError(
            f"the trajectory was recorded with {trajectory.matching} matching and cannot be replayed with "
            f"{rewriter.matching} matching: make its rewriter with rewriter_of({trajectory.matching!r}, rules)"
        )
    found = structural_hash(graph)
    if found != trajectory.start_hash:
        raise ReplayError(f"the trajectory starts from graph {trajectory.start_hash}, but this model is graph {found}")
    yield graph
    for number, step in enumerate(trajectory.steps, start=1):
        graph = rewriter.apply(graph, recorded_match(graph, rewriter, step, number))
        found = structural_hash(graph)
        if found != step.hash:
            raise ReplayError(
                f"step {number} ({step.rule}@{step.location}) led to graph {found} instead of {step.hash}"
            )
        yield graph


def of_its_rules(trajectory: Trajectory, rewriter: Rewriter) -> Rewriter:
    """Return a rewriter of the steps' rules alone, which finds the same matches of them in far less time."""
    taken = {step.rule for step in trajectory.steps}
    return rewriter_of(rewriter.matching, [rule for rule in rewriter.rules if rule.id in taken])


def recorded_match(graph: Graph, rewriter: Rewriter, step: Step, number: int) -> Match:
    """The match that a step took in `graph`; `number`, from 1, is for the message.

    `ReplayError` if the rule is not in the library or does not match so often.
    """
    index = next((i for i, r in enumerate(rewriter.rules) if r.id == step.rule), None)
    if index is None:
        raise ReplayError(f"step {number} applies rule {step.rule}, which is not in the library")
    matches = rewriter.matches(graph)[index]
    if not 0 <= step.location < len(matches):
        raise ReplayError(
            f"step {number} applies {step.rule} at location {step.location}, but the rule matches {len(matches)} times"
        )
    return matches[step.location]
