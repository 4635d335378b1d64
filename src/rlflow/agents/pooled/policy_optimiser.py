"""The controller over (rule, location) on the real graph.

    optimiser = PooledPolicyOptimiser(library, rewriter, cost_model, world_model, controller, environment)
    result = optimiser.optimise(graph, Budget())

Before each action the real graph is encoded by V and joined with M's memory of the steps so far, which gives the same
observation (z, h, counts, cost) that a dream gives. Actions that the dream would have allowed but the real graph does
not are masked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import torch

from rlflow.agents.policy_optimiser import Best, Player, PolicyOptimiser
from rlflow.agents.pooled.controller import Controller
from rlflow.agents.pooled.dream_training import untrained
from rlflow.cost.base import CostModel
from rlflow.environments.substitution_env import EnvironmentConfig, SubstitutionEnv
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.method import never
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.world_model.pooled import latent_state
from rlflow.world_model.pooled.model import WorldModel
from rlflow.world_model.pooled.rule_alignment import RuleAlignment

_HERE = {"start_rewrites": 0}  # training may start behind random rewrites, an optimisation may not


@dataclass(frozen=True)
class PooledPolicyOptimiser(PolicyOptimiser):
    """Plays with a controller that sees a graph as one vector.

    A dream has no graph in which to tell locations apart; here there is one, so candidates are tried on it.
    """

    library: Library
    rewriter: Rewriter
    cost_model: CostModel
    world_model: WorldModel
    controller: Controller
    environment: EnvironmentConfig

    def player(self, graph: Graph) -> Player:
        """`InputError` if controller and world model were trained on different rules."""
        if self.controller.arguments.rule_ids != self.world_model.arguments.rule_ids:
            raise InputError("the controller and the world model were trained on different rules: train them together")
        env = SubstitutionEnv(
            graph,
            self.library,
            self.cost_model,
            config=self.environment,
            rewriter=self.rewriter,
            vocabulary=self.world_model.arguments.vocabulary,
        )
        return _PooledPlayer(env, self.world_model, self.controller, self._alignment)

    def untrained(self) -> PooledPolicyOptimiser:
        """The same with the controller as it was before its training."""
        return replace(self, controller=untrained(self.controller.arguments, seed=self.seed))

    @cached_property
    def _alignment(self) -> RuleAlignment:
        """Made once, so that rules that the model has never seen are warned of once."""
        return RuleAlignment.of(self.world_model.arguments.rule_ids, [r.id for r in self.library.rules])


class _PooledPlayer(Player):
    def __init__(
        self, env: SubstitutionEnv, world_model: WorldModel, controller: Controller, alignment: RuleAlignment
    ) -> None:
        self.env, self.world_model, self.controller, self.alignment = env, world_model, controller, alignment
        self.evaluator = env.evaluator

    def start(self) -> Best:
        self.env.reset(options=_HERE)
        return self._here()

    def play(self, generator: torch.Generator | None, candidates: int, is_over: Callable[[], bool] = never) -> Best:
        env, alignment, model = self.env, self.alignment, self.world_model
        best = self.start()
        layout = latent_state.layout_of(model)
        state = latent_state.begin(model, env.graph_arrays(), alignment.counts(env.counts()), 100.0)
        ended = False
        while not ended and not is_over():
            observation = state.observation(layout)
            chosen = self.controller.act(observation, generator is None, generator)
            action = (int(chosen[0]), int(chosen[1]))

            if candidates > 1:
                proposed = self.controller.likeliest_rewrites(observation, candidates, generator)
                action = self._cheapest(proposed) or action

            _, _, terminated, truncated, _ = env.step(alignment.action(*action))
            ended = terminated or truncated
            if terminated:
                break

            if env.cost.runtime_ms < best.runtime_ms:
                best = self._here()

            percent = 100.0 * env.cost.runtime_ms / env.start_cost.runtime_ms
            counts = alignment.counts(env.counts())
            state = latent_state.advance(model, state, action, env.graph_arrays(), counts, percent)
        return best

    def _here(self) -> Best:
        return Best(self.env.graph, self.env.cost.runtime_ms, self.env.trajectory())

    def _cheapest(self, rewrites: list[tuple[int, int]]) -> tuple[int, int] | None:
        """The one of these rewrites that leads to the cheapest graph, ties to the first; None if none saves anything.

        rewrites: (rule, location) in the world model's order of rules.
        """
        env, evaluator = self.env, self.evaluator
        matches = evaluator.rewriter.matches(env.graph)
        actions = ((rewrite, self.alignment.action(*rewrite)) for rewrite in rewrites)
        places = ((rewrite, matches[rule][location]) for rewrite, (rule, location) in actions)
        foreseen = evaluator.foreseen(env.graph, places)
        costs = {rewrite: evaluator.runtime_after_ms(env.graph, match) for rewrite, match in foreseen}
        cheapest = min(costs, key=costs.__getitem__, default=None)
        if cheapest is None or costs[cheapest] >= env.cost.runtime_ms:
            return None
        return cheapest
