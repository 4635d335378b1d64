"""The controller over match tokens on the real graph.

    optimiser = TokenPolicyOptimiser(library, rewriter, cost_model, world_model, controller, max_steps=150)
    result = optimiser.optimise(graph, Budget())

Before each action V reads the matches of the real graph, which gives the same table of kinds that a dream gives. Of the
kind that is chosen, the first match is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from rlflow.agents.policy_optimiser import Best, Player, PolicyOptimiser
from rlflow.agents.tokens.controller import TokenController
from rlflow.agents.tokens.dream_training import untrained
from rlflow.agents.tokens.real_observation import RealObserver
from rlflow.cost.base import CostModel
from rlflow.environments.token_process import Situation, TokenProcess
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.optimiser import never
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.record import Step, Trajectory
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


class _TokenPlayer(Player):
    def __init__(
        self,
        process: TokenProcess,
        observer: RealObserver,
        controller: TokenController,
        library: Library,
        max_steps: int,
    ) -> None:
        self.process, self.observer, self.controller = process, observer, controller
        self.library, self.max_steps = library, max_steps
        self.evaluator = process.evaluator
        self._begun = process.start()

    def start(self) -> Best:
        return self._best(self._begun, [])

    def play(self, generator: torch.Generator | None, candidates: int, is_over: Callable[[], bool] = never) -> Best:
        situation, best, taken = self._begun, self.start(), list[Step]()
        seen = self.observer.first(situation)
        while len(taken) < self.max_steps and len(seen.token) and not is_over():
            observation = self.observer.observation(seen, self.process.unit_percent)
            action = int(self.controller.act(observation, generator is None, generator))
            if candidates > 1:
                likeliest = self.controller.likeliest_kinds(observation, candidates, generator)
                action = _saving_most(situation, likeliest, action)
            if action == len(seen.token):
                break

            location, match = situation.kinds.matches[situation.first(action)]
            situation, step = self.process.step(situation, action)
            seen = self.observer.after(seen, step, situation)
            runtime_ms = self.evaluator.confirmed_ms(situation.graph)
            taken.append(
                Step(match.rule.id, location.location, structural_hash(situation.graph), runtime_ms, step.reward)
            )
            if runtime_ms < best.runtime_ms:
                best = self._best(situation, taken)
        return best

    def _best(self, situation: Situation, taken: list[Step]) -> Best:
        trajectory = Trajectory(
            start_hash=structural_hash(self._begun.graph),
            start_runtime_ms=self.process.start_ms,
            cost_model=self.evaluator.cost_model.name,
            library=self.library.hash,
            steps=tuple(taken),
            matching=self.evaluator.rewriter.matching,
        )
        runtime_ms = taken[-1].runtime_ms if taken else self.process.start_ms
        return Best(situation.graph, runtime_ms, trajectory)


def _saving_most(situation: Situation, kinds: list[int], otherwise: int) -> int:
    """The one of these kinds that saves most, ties to the first; `otherwise` if none saves anything."""
    saving = situation.saving_of(kinds)
    return kinds[int(saving.argmax())] if saving.max(initial=0.0) > 0 else otherwise
