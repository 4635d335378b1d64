"""The controller over match tokens on the real graph.

    optimiser = TokenPolicyOptimiser(library, rewriter, cost_model, world_model, controller, max_steps=150)
    result = optimiser.optimise(graph, Budget())

Before each action V reads the matches of the real graph, which gives the same table of kinds that a dream gives. Of the
kind that is chosen, the first match is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch

from rlflow.agents.policy_optimiser import Player, PointingPlayer, PolicyOptimiser
from rlflow.agents.tokens.controller import TokenController
from rlflow.agents.tokens.dream_training import untrained
from rlflow.agents.tokens.real_observation import RealObserver, Seen
from rlflow.cost.base import CostModel
from rlflow.environments.token_process import Situation, TokenProcess
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.record import Step
from rlflow.world_model.tokens.model import TokenWorldModel


@dataclass(frozen=True)
class TokenPolicyOptimiser(PolicyOptimiser):
    """Plays episodes of at most `max_steps` rewrites with a controller that sees kinds of matches."""

    library: Library
    rewriter: Rewriter
    cost_model: CostModel
    world_model: TokenWorldModel
    controller: TokenController
    max_steps: int

    def player(self, graph: Graph) -> Player:
        """`InputError` if controller and world model do not belong together, or the graph's price is 0."""
        known = self.world_model.arguments
        if self.controller.arguments.embedding != known.config.encoder_width:
            raise InputError("the controller was trained in the dream of another world model: train them together")
        process = TokenProcess(graph, self.rewriter, self.cost_model, known.vocabulary)
        return _TokenPlayer(process, RealObserver(self.world_model), self.controller, self.library, self.max_steps)

    def drawn(self, graph: Graph, episodes: int) -> list[float]:
        """The improvement in percent by each of so many episodes of drawn actions."""
        player, generator = self.player(graph), torch.Generator().manual_seed(self.seed)
        start_ms = player.start().runtime_ms
        found = [player.play(generator, candidates=1).runtime_ms for _ in range(episodes)]
        return [100.0 * (start_ms - best_ms) / start_ms for best_ms in found]

    def untrained(self) -> TokenPolicyOptimiser:
        """The same with the controller as it was before its training."""
        return replace(self, controller=untrained(self.controller.arguments, seed=self.seed))


class _View(NamedTuple):
    """A situation, and the view of it."""

    situation: Situation
    seen: Seen


class _TokenPlayer(PointingPlayer[_View]):
    """The things are kinds of matches."""

    def __init__(
        self,
        process: TokenProcess,
        observer: RealObserver,
        controller: TokenController,
        library: Library,
        max_steps: int,
    ) -> None:
        super().__init__(process.evaluator, process.start_ms, controller, library.hash, max_steps)
        self.process, self.observer = process, observer
        start = process.start()
        self._begun = _View(start, observer.first(start))

    def begun(self) -> _View:
        return self._begun

    def things(self, seen: _View) -> int:
        return len(seen.seen.token)

    def graph(self, seen: _View) -> Graph:
        return seen.situation.graph

    def observation(self, seen: _View) -> np.ndarray:
        return self.observer.observation(seen.seen, self.process.unit_percent)

    def saving(self, seen: _View, things: Sequence[int]) -> np.ndarray:
        return seen.situation.saving_of(things)

    def after(self, seen: _View, thing: int) -> tuple[_View, Step]:
        before = seen.situation
        location, match = before.kinds.matches[before.first(thing)]
        situation, step = self.process.step(before, thing)
        now = _View(situation, self.observer.after(seen.seen, step, situation))
        runtime_ms, hash_ = self.evaluator.confirmed_ms(situation.graph), structural_hash(situation.graph)
        return now, Step(match.rule.id, location.location, hash_, runtime_ms, step.reward)
