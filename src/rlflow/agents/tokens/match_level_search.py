"""The controller over match tokens on the real graph.

    search = MatchLevelSearch(library, rewriter, cost_model, world_model, controller, max_steps=150)
    result = search.optimise(graph, Budget())

Before each action V reads the matches of the real graph, which gives the same table of kinds that a dream gives. Of the
kind that is chosen, the first match is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

from rlflow.agents.policy_search import Player, PointingPlayer, PolicySearch
from rlflow.agents.tokens.controller import TokenController
from rlflow.agents.tokens.dream_training import untrained
from rlflow.agents.tokens.real_observation import RealObserver, Seen
from rlflow.environments.token_process import Situation, TokenProcess
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.method import Budget, State, Workspace
from rlflow.world_model.tokens.model import TokenWorldModel


@dataclass(frozen=True)
class MatchLevelSearch(PolicySearch):
    """Plays episodes of at most `max_steps` rewrites with a controller that sees kinds of matches."""

    world_model: TokenWorldModel
    controller: TokenController
    max_steps: int

    def player(self, work: Workspace, state: State) -> Player:
        """`InputError` if controller and world model do not belong together, or the graph's price is 0."""
        known = self.world_model.arguments
        if self.controller.arguments.embedding != known.config.encoder_width:
            raise InputError("the controller was trained in the dream of another world model: train them together")
        process = TokenProcess(state.graph, work.rewriter, self.cost_model, known.vocabulary, evaluator=work.evaluator)
        return _TokenPlayer(work, state, self.controller, self.max_steps, process, RealObserver(self.world_model))

    def drawn(self, graph: Graph, episodes: int) -> list[float]:
        """The improvement in percent by each of so many episodes of drawn actions."""
        work, generator = self.begin(graph, Budget()), torch.Generator().manual_seed(self.seed)
        player, start_ms = self.player(work, work.start), work.start.runtime_ms
        found = [player.play(generator, candidates=1).runtime_ms for _ in range(episodes)]
        return [100.0 * (start_ms - best_ms) / start_ms for best_ms in found]

    def untrained(self) -> MatchLevelSearch:
        """The same with the controller as it was before its training."""
        return replace(self, controller=untrained(self.controller.arguments, seed=self.seed))


class _View(NamedTuple):
    """A situation, and the view of it."""

    situation: Situation
    seen: Seen


class _TokenPlayer(PointingPlayer[_View]):
    """The choices are kinds of matches."""

    def __init__(
        self,
        work: Workspace,
        start: State,
        controller: TokenController,
        max_steps: int,
        process: TokenProcess,
        observer: RealObserver,
    ) -> None:
        super().__init__(work, start, controller, max_steps)
        self.process, self.observer = process, observer
        first = process.start()
        self._begun = _View(first, observer.first(first))

    def begun(self) -> _View:
        return self._begun

    def choices(self, seen: _View) -> int:
        return len(seen.seen.token)

    def observation(self, seen: _View) -> np.ndarray:
        return self.observer.observation(seen.seen, self.process.unit_percent)

    def saving(self, seen: _View, choices: Sequence[int]) -> np.ndarray:
        return seen.situation.saving_of(choices)

    def after(self, seen: _View, choice: int, state: State) -> tuple[_View, State]:
        before = seen.situation
        location, _ = before.kinds.matches[before.first(choice)]
        situation, step = self.process.step(before, choice)
        runtime_ms = self.work.evaluator.confirmed_ms(situation.graph)
        now = _View(situation, self.observer.after(seen.seen, step, situation))
        return now, State(situation.graph, runtime_ms, state, location, step.reward)
