"""The controller over (rule, location) on the real graph.

    search = GraphLevelSearch(library, rewriter, cost_model, world_model, controller, environment)
    result = search.optimise(graph, Budget())

Before each action the real graph is encoded by V and joined with M's memory of the steps so far, which gives the same
observation (z, h, counts, cost) that a dream gives. Actions that the dream would have allowed but the real graph does
not are masked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import torch

from rlflow.agents.policy_search import Player, PolicySearch
from rlflow.agents.pooled.controller import Controller
from rlflow.agents.pooled.dream_training import untrained
from rlflow.environments.substitution_env import EnvironmentConfig, SubstitutionEnv
from rlflow.errors import InputError
from rlflow.method import State, Workspace
from rlflow.rules.matching.rewriter import Location
from rlflow.world_model.pooled import latent_state
from rlflow.world_model.pooled.model import WorldModel
from rlflow.world_model.pooled.rule_alignment import RuleAlignment

_HERE = {"start_rewrites": 0}  # training may start behind random rewrites, an optimisation may not


@dataclass(frozen=True)
class GraphLevelSearch(PolicySearch):
    """Plays with a controller that sees a graph as one vector.

    A dream has no graph in which to tell locations apart; here there is one, so candidates are tried on it.
    """

    world_model: WorldModel
    controller: Controller
    environment: EnvironmentConfig

    def player(self, work: Workspace, state: State) -> Player:
        """`InputError` if controller and world model were trained on different rules."""
        if self.controller.arguments.rule_ids != self.world_model.arguments.rule_ids:
            raise InputError("the controller and the world model were trained on different rules: train them together")
        env = SubstitutionEnv(
            state.graph,
            self.library,
            self.cost_model,
            config=self.environment,
            evaluator=work.evaluator,
            vocabulary=self.world_model.arguments.vocabulary,
        )
        return _PooledPlayer(work, state, env, self.world_model, self.controller, self._alignment)

    def untrained(self) -> GraphLevelSearch:
        """The same with the controller as it was before its training."""
        return replace(self, controller=untrained(self.controller.arguments, seed=self.seed))

    @cached_property
    def _alignment(self) -> RuleAlignment:
        """Made once, so that rules that the model has never seen are warned of once."""
        return RuleAlignment.of(self.world_model.arguments.rule_ids, [r.id for r in self.library.rules])


class _PooledPlayer(Player):
    def __init__(
        self,
        work: Workspace,
        start: State,
        env: SubstitutionEnv,
        world_model: WorldModel,
        controller: Controller,
        alignment: RuleAlignment,
    ) -> None:
        self.work, self.start = work, start
        self.env, self.world_model, self.controller, self.alignment = env, world_model, controller, alignment

    def play(self, generator: torch.Generator | None, candidates: int) -> State:
        env, alignment, model = self.env, self.alignment, self.world_model
        env.reset(options=_HERE)
        best = state = self.start
        layout = latent_state.layout_of(model)
        latent = latent_state.begin(model, env.graph_arrays(), alignment.counts(env.counts()), 100.0)
        ended = False
        while not ended and not self.work.is_spent:
            observation = latent.observation(layout)
            chosen = self.controller.act(observation, generator is None, generator)
            action = (int(chosen[0]), int(chosen[1]))

            if candidates > 1:
                proposed = self.controller.likeliest_rewrites(observation, candidates, generator)
                action = self._cheapest(proposed) or action

            place = Location(*alignment.action(*action))
            _, _, terminated, truncated, _ = env.step(place)
            ended = terminated or truncated
            if terminated:
                break

            state = State(env.graph, env.cost.runtime_ms, state, place)
            best = min(best, state, key=lambda s: s.runtime_ms)

            percent = 100.0 * env.cost.runtime_ms / env.start_cost.runtime_ms
            counts = alignment.counts(env.counts())
            latent = latent_state.advance(model, latent, action, env.graph_arrays(), counts, percent)
        return best

    def _cheapest(self, rewrites: list[tuple[int, int]]) -> tuple[int, int] | None:
        """The one of these rewrites that leads to the cheapest graph, ties to the first; None if none saves anything.

        rewrites: (rule, location) in the world model's order of rules.
        """
        env, evaluator = self.env, self.work.evaluator
        matches = evaluator.rewriter.matches(env.graph)
        actions = ((rewrite, self.alignment.action(*rewrite)) for rewrite in rewrites)
        places = ((rewrite, matches[rule][location]) for rewrite, (rule, location) in actions)
        foreseen = evaluator.foreseen(env.graph, places)
        costs = {rewrite: evaluator.runtime_after_ms(env.graph, match) for rewrite, match in foreseen}
        cheapest = min(costs, key=costs.__getitem__, default=None)
        if cheapest is None or costs[cheapest] >= env.cost.runtime_ms:
            return None
        return cheapest
