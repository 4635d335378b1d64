"""The controller over candidates as a method: it acts on any graph as it learned to act on that of its training.

    search = CandidateSearch(library, rewriter, cost_model, controller, sampled_episodes=0, candidates=1)
    result = search.optimise(graph, Budget())

These settings play one episode of the most probable actions. The best graph met is the result, not the last. Every
candidate that is looked at is a rewrite that is carried out, and counts as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rlflow.agents.candidates.controller import CandidateController
from rlflow.agents.policy_search import PointingPlayer, PolicySearch
from rlflow.environments.candidate_process import CandidateProcess, CandidateState
from rlflow.method import Budget, Ledger, State, Workspace


@dataclass(frozen=True)
class CandidateSearch(PolicySearch):
    """Plays episodes as long as those of the training with a controller that sees candidate graphs."""

    controller: CandidateController
    name: str = field(default="candidates", kw_only=True)

    def player(self, work: Workspace, state: State) -> CandidatePlayer:
        """`InputError` for a graph whose price is 0."""
        episodes = self.controller.arguments.episodes
        process = CandidateProcess(state.graph, work.rewriter, self.cost_model, episodes, evaluator=work.evaluator)
        return CandidatePlayer(work, state, self.controller, process)


class CandidatePlayer(PointingPlayer[CandidateState]):
    """Plays episodes of a process; the choices are its candidates."""

    def __init__(
        self, work: Workspace, start: State, controller: CandidateController, process: CandidateProcess
    ) -> None:
        super().__init__(work, start, controller, process.config.max_steps)
        self.process, self.memory = process, controller.policy.memory
        self.scale = controller.scale(process)

    @classmethod
    def of(cls, process: CandidateProcess, controller: CandidateController) -> CandidatePlayer:
        """Return the player of a process that no search has made, without a limit."""
        start, ledger = State(process.start().graph, process.start_ms), Ledger(Budget(), process.evaluator.tally)
        work = Workspace(process.evaluator, controller.arguments.library_hash, start, ledger)
        return cls(work, start, controller, process)

    def begun(self) -> CandidateState:
        return self.process.start()

    def choices(self, seen: CandidateState) -> int:
        return len(seen.candidates)

    def observation(self, seen: CandidateState) -> np.ndarray:
        return np.array([self.memory.keep(seen, self.scale)], np.int64)

    def saving(self, seen: CandidateState, choices: Sequence[int]) -> np.ndarray:
        return seen.saving_ms[list(choices)]

    def after(self, seen: CandidateState, choice: int, state: State) -> tuple[CandidateState, State]:
        now = self.process.step(seen, choice)
        return now, State(now.graph, now.runtime_ms, state, seen.candidates[choice].location)
