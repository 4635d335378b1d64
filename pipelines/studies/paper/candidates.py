"""X-RLflow's agent on a graph, and the same agent on graphs of other tensor shapes than it was trained on."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from rlflow.agents.candidates.candidate_config import CandidateControllerConfig, CandidateNetworkConfig
from rlflow.agents.candidates.candidate_search import CandidateSearch
from rlflow.agents.candidates.controller import CandidateController
from rlflow.agents.candidates.training import train_on_candidates
from rlflow.environments.candidate_process import CandidateConfig, CandidateProcess
from rlflow.method import Budget
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy
from studies.paper.rows import Row, method_row
from studies.subject import Subject


@dataclass(frozen=True)
class CandidateTraining:
    """The settings of the agent (conf/agent/candidates.yaml)."""

    episodes: CandidateConfig
    network: CandidateNetworkConfig
    ppo: CandidateControllerConfig


@dataclass(frozen=True)
class CandidatesCell:
    """One training on one graph: the agent as RLFlow's is deployed, its policy alone, and the same agent untrained.

    proposals: the policy's likeliest rewrites that are tried before each step, after the first episode. drawn_episodes:
    how many of its episodes draw their actions.
    """

    subject: Subject
    seed: int
    training: CandidateTraining
    proposals: int
    drawn_episodes: int

    def run(self) -> dict[str, Row]:
        trained = _trained(self.subject, self.training, self.seed)
        alone = _policy(trained.controller, self.subject)
        untrained = _policy(CandidateController.untrained(trained.controller.arguments, seed=self.seed), self.subject)
        curves = {"return_percent": trained.returns, "trial_percent": trained.trials}

        graph, prices, rules = self.subject.graph(), self.subject.prices(), library.load()
        row = partial(method_row, graph, prices=prices, rules=rules)
        trained_row = partial(row, training_s=trained.training_s, training_rewrites=trained.rewrites)
        return {
            "x-rlflow": trained_row(self._proposing(alone).optimise(graph, Budget())),
            "x-rlflow alone": trained_row(alone.optimise(graph, Budget()), curves=curves),
            "x-rlflow untrained": row(self._proposing(untrained).optimise(graph, Budget())),
        }

    def _proposing(self, policy: CandidateSearch) -> CandidateSearch:
        """The policy after greedy search, where it proposes what is tried: as RLFlow's own agent is deployed."""
        proposing = replace(policy, sampled_episodes=self.drawn_episodes, candidates=self.proposals, seed=self.seed)
        return proposing.after_greedy()


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
                "transferred_percent": _alone_percent(general, shape),
                "special_percent": _alone_percent(special, shape),
                "greedy_percent": greedy.improvement_percent,
            }
        )


@dataclass(frozen=True)
class _Trained:
    """A controller, and what its training took."""

    controller: CandidateController
    training_s: float
    rewrites: int
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


def _policy(controller: CandidateController, subject: Subject) -> CandidateSearch:
    """The agent by itself: one episode of its most probable actions, from no prices known."""
    rules = library.load()
    return CandidateSearch(rules, Rewriter(rules.rules), subject.prices(), controller, sampled_episodes=0, candidates=1)


def _alone_percent(controller: CandidateController, subject: Subject) -> float:
    return _policy(controller, subject).optimise(subject.graph(), Budget()).improvement_percent
