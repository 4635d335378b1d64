"""The controller over candidates as a method: it acts on any graph as it learned to act on that of its training.

    search = CandidateSearch(library, rewriter, cost_model, controller, sampled_episodes=0, candidates=1)
    result = search.optimise(graph, Budget())

These settings play one episode of the most probable actions. The best graph met is the result, not the last. Every
candidate that is looked at is a rewrite that is carried out, and counts as one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rlflow.agents.candidates.controller import CandidateController
from rlflow.agents.player import Player
from rlflow.agents.policy_search import PolicySearch
from rlflow.environments.candidate_process import CandidateProcess, CandidateState
from rlflow.method import Budget, Ledger, State, Workspace

CandidatePlayer = Player[CandidateState, int]


@dataclass(frozen=True)
class CandidateSearch(PolicySearch):
    """Plays episodes as long as those of the training with a controller that sees candidate graphs."""

    controller: CandidateController
    name: str = field(default="candidates", kw_only=True)

    def player(self, work: Workspace, state: State) -> CandidatePlayer:
        """`InputError` for a graph whose price is 0."""
        episodes = self.controller.arguments.episodes
        process = CandidateProcess(state.graph, work.rewriter, self.cost_model, episodes, evaluator=work.evaluator)
        return _player(work, state, process, self.controller)


def player_of(process: CandidateProcess, controller: CandidateController) -> CandidatePlayer:
    """Return the player of a process that no search has made, without a limit."""
    start, ledger = State(process.start().graph, process.start_ms), Ledger(Budget(), process.evaluator.tally)
    work = Workspace(process.evaluator, controller.arguments.library_hash, start, ledger)
    return _player(work, start, process, controller)


def _player(
    work: Workspace, start: State, process: CandidateProcess, controller: CandidateController
) -> CandidatePlayer:
    observer = controller.policy.memory.observer(controller.scale(process))
    return Player(work, start, process.observed_by(observer), controller, process.config.max_steps)
