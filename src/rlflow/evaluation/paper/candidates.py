"""X-RLflow's agent on a graph, and the same agent on graphs of other tensor shapes than it was trained on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from rlflow.agents.candidates.config import CandidateControllerConfig, CandidateNetworkConfig
from rlflow.agents.candidates.controller import CandidateController
from rlflow.agents.candidates.policy_optimiser import CandidateOptimiser
from rlflow.agents.candidates.training import train_on_candidates
from rlflow.environments.candidate_process import CandidateConfig, CandidateProcess
from rlflow.evaluation.paper.rows import Row, Subject, method_row
from rlflow.optimiser import Budget, OptimisationResult
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy


@dataclass(frozen=True)
class CandidateTraining:
    """The settings of the agent (conf/agent/candidates.yaml)."""

    episodes: CandidateConfig
    network: CandidateNetworkConfig
    ppo: CandidateControllerConfig


@dataclass(frozen=True)
class CandidatesCell:
    """One training on one graph."""

    subject: Subject
    seed: int
    training: CandidateTraining

    def run(self) -> dict[str, Row]:
        trained = _trained(self.subject, self.training, self.seed)
        found = _acted(trained.controller, self.subject)
        row = method_row(
            self.subject.graph(),
            found,
            self.subject.prices(),
            library.load(),
            trained.training_s,
            trained.evaluations,
            {"return_percent": trained.returns, "trial_percent": trained.trials},
        )
        return {"x-rlflow": row}


@dataclass(frozen=True)
class ShapesCell:
    """A policy that was trained on the subject alone acts on graphs of other shapes, beside one trained on each.

    shapes: those graphs by name. What greedy search saves stands beside both.
    """

    subject: Subject
    seed: int
    training: CandidateTraining
    shapes: Mapping[str, Subject]

    def run(self) -> dict[str, Row]:
        general = _trained(self.subject, self.training, self.seed).controller
        return {name: self._compared(general, shape) for name, shape in self.shapes.items()}

    def _compared(self, general: CandidateController, shape: Subject) -> Row:
        special = _trained(shape, self.training, self.seed).controller
        rules = library.load()
        greedy = Greedy(rules, Rewriter(rules.rules), shape.prices()).optimise(shape.graph(), Budget())
        return Row(
            {
                "transferred_percent": _acted(general, shape).improvement_percent,
                "special_percent": _acted(special, shape).improvement_percent,
                "greedy_percent": greedy.improvement_percent,
            }
        )


@dataclass(frozen=True)
class _Trained:
    """A controller, and what its training took."""

    controller: CandidateController
    training_s: float
    evaluations: int
    returns: list[float]
    trials: list[float]


def _trained(subject: Subject, training: CandidateTraining, seed: int) -> _Trained:
    rules = library.load()
    process = CandidateProcess(subject.graph(), Rewriter(rules.rules), subject.prices(), training.episodes)
    updates: list[dict[str, float]] = []
    started = time.perf_counter()
    controller = train_on_candidates(
        process,
        rules.hash,
        training.ppo,
        training.network,
        seed=seed,
        on_update=lambda _, figures: updates.append(figures),
    )
    return _Trained(
        controller,
        time.perf_counter() - started,
        process.evaluator.effort.rewrites,
        [figures["return_percent"] for figures in updates if "return_percent" in figures],
        [figures["real_score_percent"] for figures in updates if "real_score_percent" in figures],
    )


def _acted(controller: CandidateController, subject: Subject) -> OptimisationResult:
    """The result of one episode of the agent's most probable actions, from no prices known."""
    rules = library.load()
    agent = CandidateOptimiser(
        rules, Rewriter(rules.rules), subject.prices(), controller, sampled_episodes=0, candidates=1
    )
    return agent.optimise(subject.graph(), Budget())
