"""The paper's second question: how the controller alone acts in states of the graph that it has not seen.

Random rewrites lead there from the graph that it was trained on, and what greedy search saves stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.agents.match_level.match_level_search import MatchLevelSearch
from rlflow.method import Budget
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.greedy import Greedy
from rlflow.world_model.match_level.model import MatchLevelModel
from studies.paper.rows import Row
from studies.paper.walks import random_rewrite
from studies.subject import Subject


@dataclass(frozen=True)
class UnseenCell:
    """A policy of the subject, in its folder, and how many random rewrites lead to each graph that it acts from."""

    subject: Subject
    seed: int
    policy: Path
    rewrites: tuple[int, ...]

    def run(self) -> dict[str, Row]:
        prices, rules = self.subject.prices(), library.load()
        rewriter = Rewriter(rules.rules)
        model, controller = MatchLevelModel.load(self.policy), MatchLevelController.load(self.policy)
        alone = MatchLevelSearch(
            rules, rewriter, prices, model, controller, sampled_episodes=0, candidates=1, seed=self.seed
        )
        greedy, rows = Greedy(rules, rewriter, prices), dict[str, Row]()
        for number in self.rewrites:
            graph, rng = self.subject.graph(), np.random.default_rng(self.seed)
            for _ in range(number):
                graph = random_rewrite(graph, rewriter, rng)
            figures = {
                "improvement_percent": alone.optimise(graph, Budget()).improvement_percent,
                "greedy_percent": greedy.optimise(graph, Budget()).improvement_percent,
            }
            rows[str(number)] = Row(figures)
        return rows
