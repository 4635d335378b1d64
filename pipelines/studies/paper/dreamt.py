"""RLFlow's agent: rollouts, a world model, and a controller that is trained in its dream, from nothing.

    rows = DreamtCell(subject, seed=0, ...).run()        {"rlflow": ..., "dreamt": ..., "tau 0.5": ...}

The controller that the agent acts with is chosen among its snapshots by trials on the graph, as in the experiment
(`train_controller`); those of the temperatures are not, so that their scores in the dream and in reality are of the
last one (Table 3). `rlflow` begins with greedy search, `dreamt` is the controller alone.

The paper's second question is of states that the agent has never seen: it acts from graphs that random rewrites have
led to, and what it saves there stands beside what greedy search saves.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from rlflow.agents.dream_training import train_in_dream
from rlflow.agents.match_level.dream import MatchLevelDream
from rlflow.agents.match_level.learning import LearningConfig, dream_of_graph
from rlflow.agents.match_level.match_level_search import MatchLevelSearch
from rlflow.agents.match_level.real_env import real_return
from rlflow.agents.policy_search import judge_on
from rlflow.cost.base import CostModel
from rlflow.ir.graph import Graph
from rlflow.method import Budget
from rlflow.processes.token_process import TokenProcess
from rlflow.rules import library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy
from studies.paper.model_free import acting_alone
from studies.paper.rows import Row, method_row
from studies.paper.walks import random_rewrite
from studies.subject import Subject


@dataclass(frozen=True)
class DreamtCell:
    """The settings of the experiment's stages, and what is asked of the agent beside its result.

    proposals: the rewrites that it tries on the graph before each step, after its first episode. unseen: how many
    random rewrites lead to the graphs that it has not seen. temperatures: of further dreams, in which it is trained for
    `sweep_share` of its steps.
    """

    subject: Subject
    seed: int
    learning: LearningConfig
    proposals: int
    unseen: tuple[int, ...]
    temperatures: tuple[float, ...]
    sweep_share: float

    def run(self) -> dict[str, Row]:
        graph, prices, rules = self.subject.graph(), self.subject.prices(), library.load()
        rewriter = Rewriter(rules.rules)
        process = TokenProcess(graph, rewriter, prices)
        started = time.perf_counter()
        losses: list[dict[str, float]] = []
        dream = dream_of_graph(
            process,
            self.subject.name,
            self.learning,
            seed=self.seed,
            library_hash=rules.hash,
            on_epoch=lambda _, figures: losses.append(figures),
        )

        alone = partial(acting_alone, rules, rewriter, prices, dream.model, seed=self.seed)
        told: list[dict[str, float]] = []
        training = train_in_dream(
            dream,
            self.learning.ppo,
            seed=self.seed,
            on_round=lambda _, figures: told.append(figures),
            judge=judge_on(graph, alone),
        )
        training_s, rewrites = time.perf_counter() - started, process.rewrites + training.rewrites
        policy = alone(training.controller)
        courses = _courses(told)
        curves = _courses(losses) | {name: courses.get(name, []) for name in ("return_percent", "real_score_percent")}

        acting = policy.optimise(graph, Budget())
        proposing = replace(policy, sampled_episodes=1, candidates=self.proposals)
        found = proposing.after_greedy().optimise(graph, Budget())
        rows = {
            "rlflow": method_row(graph, found, prices, rules, training_s, rewrites, curves),
            "dreamt": method_row(graph, acting, prices, rules, training_s, rewrites),
        }
        rows |= {
            f"unseen {rewrites}": _unseen(_walked(graph, rewriter, rewrites, self.seed), policy, prices, rules)
            for rewrites in self.unseen
        }
        return rows | {
            f"tau {temperature:g}": self._scored(dream, process, temperature) for temperature in self.temperatures
        }

    def _scored(self, dream: MatchLevelDream, process: TokenProcess, temperature: float) -> Row:
        """Train at a temperature; score the controller in that dream, and by an episode as long on the graph."""
        ppo = self.learning.ppo.shortened(self.sweep_share)
        training = train_in_dream(dream.at(temperature), ppo, seed=self.seed)
        real = real_return(process, dream.model, training.controller, dream.config.max_steps)
        return Row({"dream_percent": training.score_percent, "real_percent": real.score_percent})


def _courses(told: list[dict[str, float]]) -> dict[str, list[float]]:
    """Each figure that was told from time to time, in a list of its own."""
    courses: dict[str, list[float]] = {}
    for figures in told:
        for name, value in figures.items():
            courses.setdefault(name, []).append(value)
    return courses


def _walked(graph: Graph, rewriter: Rewriter, rewrites: int, seed: int) -> Graph:
    """The graph that so many random rewrites lead to."""
    rng = np.random.default_rng(seed)
    for _ in range(rewrites):
        graph = random_rewrite(graph, rewriter, rng)
    return graph


def _unseen(graph: Graph, policy: MatchLevelSearch, prices: CostModel, rules: Library) -> Row:
    """The savings of the agent and of greedy search on a graph that the agent has not seen."""
    acting = policy.optimise(graph, Budget())
    greedy = Greedy(rules, policy.rewriter, prices).optimise(graph, Budget())
    return Row({"improvement_percent": acting.improvement_percent, "greedy_percent": greedy.improvement_percent})
