"""Find the rewrite that broke a model, by bisection over the steps of its trajectory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rlflow.ir.graph import Graph
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.record import Step, Trajectory
from rlflow.trajectory.replay import recorded_match, replay

IsWrong = Callable[[Graph], bool]


@dataclass(frozen=True)
class WrongStep:
    """The first step after which the graph is wrong; `number` counts from 1, `match` lies in `before`."""

    number: int
    step: Step
    match: Match
    before: Graph
    after: Graph

    @property
    def values(self) -> tuple[str, ...]:
        """The names of the values that the step replaced; one without a name is called by its operator."""
        nodes = self.before.nodes
        return tuple(nodes[r.node].names[r.index] or f"an unnamed {nodes[r.node].op}" for r in self.match.roots)

    def __str__(self) -> str:
        rule, location = self.match.rule, self.step.location
        replaced = ", ".join(map(repr, self.values))
        return f"step {self.number}, rule {rule.name} ({rule.id}) at location {location}, replacing {replaced}"


def first_wrong_step(graph: Graph, trajectory: Trajectory, rewriter: Rewriter, is_wrong: IsWrong) -> WrongStep | None:
    """The first step that leads to a wrong graph; None if the last graph is right.

    Bisection: `is_wrong` is asked as often as the logarithm of the number of steps.
    """
    graphs = list(replay(graph, trajectory, rewriter))
    right, wrong = 0, len(graphs) - 1
    if not is_wrong(graphs[wrong]):
        return None

    while wrong - right > 1:
        middle = (right + wrong) // 2
        if is_wrong(graphs[middle]):
            wrong = middle
        else:
            right = middle

    before, step = graphs[wrong - 1], trajectory.steps[wrong - 1]
    return WrongStep(wrong, step, recorded_match(before, rewriter, step, wrong), before, graphs[wrong])
