"""The steps that were found on a small model, taken wherever a larger model of the same layers looks the same.

    search = replayed(library, rewriter, cost_model, model=Path("two_layers.onnx"), trajectory=Path("steps.jsonl"))

In a model of two layers a search has rewritten place P, then place Q. In one of twelve, the first step is taken at
every match that has the surroundings of P, the second at every one that has those of Q, and so on; in the end greedy
search takes what is left. That is what depth transfer comes to without learning.

The invariant: a step is taken at most as often as there were places for it, so that rules which undo each other end.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rlflow.cost.base import CostModel
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx
from rlflow.optimiser import OnProgress, State, Workspace
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Location, Rewriter
from rlflow.rules.matching.sharing import rewriter_of
from rlflow.search.base import Search
from rlflow.search.greedy import descend
from rlflow.search.locality import Surroundings, surroundings_in
from rlflow.trajectory import record
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import of_its_rules, recorded_match, replay

_NEAR = 4  # edges: places that are alike so far count as the same


@dataclass(frozen=True)
class Replayed(Search):
    """Takes the steps of a trajectory from `small`, then descends; ends by itself. The rewriter matches as theirs.

    `ReplayError` for steps that do not start from `small`, or that apply rules which the rewriter does not have.
    """

    small: Graph
    trajectory: Trajectory
    name: str = "replayed"

    def improve(self, work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
        numbers = {rule.id: number for number, rule in enumerate(work.rewriter.rules)}
        best = state
        for done, (rule, place) in enumerate(self._places(), start=1):
            for state in _everywhere(work, state, numbers[rule], place):  # noqa: B020
                best = min(best, state, key=lambda s: s.runtime_ms)
            if on_progress:
                on_progress(done / len(self.trajectory.steps), f"{state.runtime_ms:.3f} ms after {done} steps")
        return min(best, descend(work, state), descend(work, best), key=lambda s: s.runtime_ms)

    def _places(self) -> Iterator[tuple[str, Surroundings]]:
        """Yield the rule of each step, and what its match has around it in the small graph."""
        rewriter = of_its_rules(self.trajectory, rewriter_of(self.trajectory.matching, self.rewriter.rules))
        graphs = replay(self.small, self.trajectory, rewriter)
        for number, (graph, step) in enumerate(zip(graphs, self.trajectory.steps, strict=False), start=1):
            yield step.rule, surroundings_in(graph, _NEAR)(recorded_match(graph, rewriter, step, number))


def _everywhere(work: Workspace, state: State, rule: int, place: Surroundings) -> Iterator[State]:
    """Yield the states after one rewrite after another of the matches that look like `place`."""
    for _ in range(len(_alike(work, state, rule, place))):
        alike = _alike(work, state, rule, place)
        if not alike or work.is_spent:
            return
        state = work.step(state, Location(rule, alike[0]))
        yield state


def _alike(work: Workspace, state: State, rule: int, place: Surroundings) -> list[int]:
    matches = work.rewriter.matches(state.graph)[rule]
    if not matches:
        return []
    surroundings = surroundings_in(state.graph, _NEAR)
    return [number for number, match in enumerate(matches) if surroundings(match) == place]


def replayed(library: Library, rewriter: Rewriter, cost_model: CostModel, *, model: Path, trajectory: Path) -> Replayed:
    """Make the search from the small model's file and that of its steps. `InputError` for files that are neither."""
    (steps,) = record.load(trajectory)
    return Replayed(library, rewriter_of(steps.matching, rewriter.rules), cost_model, from_onnx(model), steps)
