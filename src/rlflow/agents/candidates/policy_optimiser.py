"""The controller over candidates as a method: it acts on any graph as it learned to act on that of its training.

    optimiser = CandidateOptimiser(library, rewriter, cost_model, controller, sampled_episodes=0, candidates=1)
    result = optimiser.optimise(graph, Budget())

These settings play one episode of the most probable actions. The best graph met is the result, not the last. Every
candidate that is looked at is a rewrite that is carried out, and counts as an evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rlflow.agents.candidates.controller import CandidateController
from rlflow.agents.policy_optimiser import PointingPlayer, PolicyOptimiser
from rlflow.cost.base import CostModel
from rlflow.environments.candidate_process import CandidateProcess, CandidateState
from rlflow.ir.graph import Graph
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.record import Step


@dataclass(frozen=True)
class CandidateOptimiser(PolicyOptimiser):
    """Plays episodes as long as those of the training with a controller that sees candidate graphs."""

    library: Library
    rewriter: Rewriter
    cost_model: CostModel
    controller: CandidateController
    name: str = field(default="candidates", kw_only=True)

    def player(self, graph: Graph) -> CandidatePlayer:
        """`InputError` for a graph whose price is 0."""
        process = CandidateProcess(graph, self.rewriter, self.cost_model, self.controller.arguments.episodes)
        return CandidatePlayer(process, self.controller, self.library.hash)


class CandidatePlayer(PointingPlayer[CandidateState]):
    """Plays episodes of a process; the things are its candidates."""

    def __init__(self, process: CandidateProcess, controller: CandidateController, library_hash: str) -> None:
        super().__init__(process.evaluator, process.start_ms, controller, library_hash, process.config.max_steps)
        self.process, self.memory = process, controller.policy.memory
        self.scale = controller.scale(process)

    def begun(self) -> CandidateState:
        return self.process.start()

    def things(self, seen: CandidateState) -> int:
        return len(seen.candidates)

    def graph(self, seen: CandidateState) -> Graph:
        return seen.graph

    def observation(self, seen: CandidateState) -> np.ndarray:
        return np.array([self.memory.keep(seen, self.scale)], np.int64)

    def saving(self, seen: CandidateState, things: Sequence[int]) -> np.ndarray:
        return seen.saving_ms[list(things)]

    def after(self, seen: CandidateState, thing: int) -> tuple[CandidateState, Step]:
        now = self.process.step(seen, thing)
        return now, self.process.recorded(seen, thing, now)
