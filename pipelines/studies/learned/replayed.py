"""The steps that were found on a small model, taken again and again on a larger one of the same layers.

    search = replayed(library, rewriter, cost_model, model=Path("two_layers.onnx"), trajectory=Path("steps.jsonl"))

Each step is taken at the match of its rule that looks most like the one it was found at: with the same surroundings up
to four edges away, or else two, one, or none but what it takes. Of several such, it is the one that stands among the
rule's matches where that stood: the last if it was the last. In the same model this does again what was done. A model
of twelve layers is cheaper after the steps have been gone through once, and cheaper again after the second time; in the
end greedy search takes what is left. That is what depth transfer comes to without learning.

The invariant: the steps are gone through again only if the last time has saved something, so that it ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rlflow.cost.base import CostModel
from rlflow.ir.graph import Graph
from rlflow.method import OnProgress, State, Workspace
from rlflow.onnx_io import from_onnx
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Location, Rewriter
from rlflow.rules.matching.sharing import rewriter_of
from rlflow.search.base import Search
from rlflow.search.greedy import descend, saves
from rlflow.search.locality import Surroundings, surroundings_in
from rlflow.trajectory import record
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import of_its_rules, recorded_match, replay

_DISTANCES = (4, 2, 1, 0)  # edges up to which places are alike, those that are alike farthest before others


class _Told(NamedTuple):
    """A step as it was found: its rule by number, the share of the rule's matches before it, its place by distance."""

    rule: int
    share: float
    places: tuple[Surroundings, ...]


@dataclass(frozen=True)
class Replayed(Search):
    """Takes the steps of a trajectory from `small`, then descends; ends by itself. The rewriter matches as theirs.

    `ReplayError` for steps that do not start from `small`, or that apply rules which the rewriter does not have.
    """

    small: Graph
    trajectory: Trajectory
    name: str = "replayed"

    def improve(self, work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
        steps, best = list(self._steps()), state
        while not work.is_spent:
            before = best
            for step in steps:
                state = _taken(work, state, step)
                best = min(best, state, key=lambda s: s.runtime_ms)
            if on_progress:
                on_progress(work.fraction, f"{best.runtime_ms:.3f} ms by the steps")
            if not saves(work, before, best):
                break
        return descend(work, best)

    def _steps(self) -> Iterator[_Told]:
        rewriter = of_its_rules(self.trajectory, rewriter_of(self.trajectory.matching, self.rewriter.rules))
        numbers = {rule.id: number for number, rule in enumerate(self.rewriter.rules)}
        graphs = replay(self.small, self.trajectory, rewriter)
        for number, (graph, step) in enumerate(zip(graphs, self.trajectory.steps, strict=False), start=1):
            match = recorded_match(graph, rewriter, step, number)
            (matches,) = (
                found for rule, found in rewriter.matches(graph).found() if rewriter.rules[rule].id == step.rule
            )
            places = tuple(surroundings_in(graph, distance)(match) for distance in _DISTANCES)
            yield _Told(numbers[step.rule], step.location / len(matches), places)


def _taken(work: Workspace, state: State, step: _Told) -> State:
    """Return the state after a step at the match that looks most like its place; the same state if there is none."""
    matches = work.rewriter.matches(state.graph)[step.rule]
    if matches:
        for distance, place in zip(_DISTANCES, step.places, strict=True):
            surroundings = surroundings_in(state.graph, distance)
            alike = [number for number, match in enumerate(matches) if surroundings(match) == place]
            if alike:
                nearest = min(alike, key=lambda number: abs(number / len(matches) - step.share))
                return work.step(state, Location(step.rule, nearest))
    return state


def replayed(library: Library, rewriter: Rewriter, cost_model: CostModel, *, model: Path, trajectory: Path) -> Replayed:
    """Make the search from the small model's file and that of its steps. `InputError` for files that are neither."""
    (steps,) = record.load(trajectory)
    return Replayed(library, rewriter_of(steps.matching, rewriter.rules), cost_model, from_onnx(model), steps)
