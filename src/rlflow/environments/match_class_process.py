"""The process of rewriting a graph by whole classes of matches, as environments show it.

    process = MatchClassProcess(graph, rewriter, cost_model, MatchClassConfig(observation="graph"))
    state = process.start()
    after = process.step(state, 2)              # all matches of the third class, one after another
    process.observe(after)

Choices are the classes in the order of their first matches, at most `max_choices` of them.

The invariant: the same graph, rules, settings and choices lead to the same states and observations in any process.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlflow.cost.base import CostModel
from rlflow.cost.evaluator import Evaluator
from rlflow.environments.class_observations import OBSERVATIONS
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.plugins import unknown
from rlflow.processes.class_process import ClassProcess
from rlflow.processes.token_process import MatchLevelState, TokenProcess
from rlflow.representation.match_token import MatchToken
from rlflow.representation.vocabulary import Vocabulary
from rlflow.rules.matching.rewriter import Rewriter

_MOST_NODES = 1_000_000  # of all graphs that are kept together


@dataclass(frozen=True)
class MatchClassConfig:
    """Settings of episodes over classes of matches.

    max_choices: K, the classes that can be chosen. max_steps: the horizon. observation: a name of `OBSERVATIONS`.
    """

    max_choices: int = 128
    max_steps: int = 50
    observation: str = "choices"

    def __post_init__(self) -> None:
        for name in ("max_choices", "max_steps"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} must be at least 1, not {getattr(self, name)}")
        if self.observation not in OBSERVATIONS:
            raise InputError(unknown("observation", self.observation, OBSERVATIONS))


class MatchClassProcess(ClassProcess):
    """Rewrites one graph; choices are places of classes. `InputError` for a graph whose price is 0.

    evaluator: that of the search for which it does so, with the same rewriter and cost model; None: one of its own.
    Observed graphs are written in `vocabulary`, today's by default.
    """

    def __init__(
        self,
        graph: Graph,
        rewriter: Rewriter,
        cost_model: CostModel,
        config: MatchClassConfig,
        vocabulary: Vocabulary | None = None,
        evaluator: Evaluator | None = None,
    ) -> None:
        super().__init__(TokenProcess(graph, rewriter, cost_model, evaluator=evaluator))
        self.max_choices = config.max_choices
        self.observation = OBSERVATIONS[config.observation](config.max_choices, len(rewriter.rules), vocabulary)
        self._numbers: dict[bytes, int] = {}
        self._led_to: OrderedDict[tuple[str, int], MatchLevelState] = OrderedDict()
        self._kept = max(1, _MOST_NODES // max(1, len(graph.order)))

    def step(self, state: MatchLevelState, choice: int) -> MatchLevelState:
        """Carry out a choice, or remember where it led: in a small graph an agent meets most states again."""
        place = (state.hash, choice)
        after = self._led_to.get(place)
        if after is None:
            after = self._led_to[place] = super().step(state, choice)
            if len(self._led_to) > self._kept:
                self._led_to.popitem(last=False)
        self._led_to.move_to_end(place)
        return after

    def numbers(self, tokens: Sequence[MatchToken]) -> np.ndarray:
        return np.array([self._numbers.setdefault(token.key, len(self._numbers)) for token in tokens], np.int64)

    def savings(self, state: MatchLevelState, choices: Sequence[int]) -> np.ndarray:
        """(N,) float32: what is observed of some choices; all classes of a state are priced at once."""
        return state.saving_of_all[self.shown(state)[list(choices)]]

    def shown(self, state: MatchLevelState) -> np.ndarray:
        """(P,) int64: the classes that can be chosen, the first K."""
        return super().shown(state)[: self.max_choices]

    def observe(self, state: MatchLevelState) -> Any:
        """The observation of docs/spaces.md, in the space of `observation`."""
        return self.observation.of(state, self.shown(state))

    def action_mask(self, state: MatchLevelState) -> np.ndarray:
        """(K + 1,) bool: the classes that there are, and terminate."""
        mask = np.arange(self.max_choices + 1) < len(self.shown(state))
        mask[-1] = True
        return mask
