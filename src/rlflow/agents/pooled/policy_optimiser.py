"""The trained controller as an optimiser: it acts on the real graph as it learned to act in the dream.

    optimiser = PolicyOptimiser(library, rewriter, cost_model, world_model, controller, environment)
    result = optimiser.optimise(graph, Budget())

Before each action the real graph is encoded by V and joined with M's memory of the steps so far, which gives the same
observation (z, h, counts, cost) that a dream gives.

The invariant: the result is never worse than the graph it began with, since the best graph of all episodes is kept.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property

import torch

from rlflow.agents.pooled.controller import Controller
from rlflow.agents.selection import Judge, Trial
from rlflow.cost.base import CostModel
from rlflow.environments.substitution_env import EnvironmentConfig, SubstitutionEnv
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.optimiser import Budget, Milestone, OnProgress, OptimisationResult
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.record import Trajectory
from rlflow.world_model.pooled import latent_state
from rlflow.world_model.pooled.model import WorldModel
from rlflow.world_model.pooled.rule_alignment import RuleAlignment

_HERE = {"start_rewrites": 0}  # training may start behind random rewrites, an optimisation may not


@dataclass(frozen=True)
class _Best:
    """The cheapest graph so far and the way to it."""

    graph: Graph
    runtime_ms: float
    trajectory: Trajectory


@dataclass(frozen=True)
class PolicyOptimiser:
    """An optimiser that plays episodes: first with the most probable actions, then `sampled_episodes` drawn ones.

    Actions that the dream would have allowed but the real graph does not are masked. The best graph of all episodes is
    the result, so a temporary loss costs nothing. One expansion of the budget is one episode.

    In the first episode the controller acts alone. In all others, with `candidates` above 1, it only proposes: that
    many of its likeliest rewrites are tried on the real graph, and the cheapest is taken if it saves anything. If none
    does, the controller's own action is taken, which may be a loss for a later gain, or the end. A dream has no graph
    in which to tell locations apart; here there is one.
    """

    library: Library
    rewriter: Rewriter
    cost_model: CostModel
    world_model: WorldModel
    controller: Controller
    environment: EnvironmentConfig
    sampled_episodes: int = 4
    candidates: int = 16
    seed: int = 0
    name: str = "rlflow"

    def optimise(self, graph: Graph, budget: Budget, on_progress: OnProgress | None = None) -> OptimisationResult:
        """The best graph of all episodes.

        `InputError` if controller and world model were trained on different rules.
        """
        if self.controller.arguments.rule_ids != self.world_model.arguments.rule_ids:
            raise InputError("the controller and the world model were trained on different rules: train them together")

        started = time.perf_counter()
        env = SubstitutionEnv(
            graph,
            self.library,
            self.cost_model,
            config=self.environment,
            rewriter=self.rewriter,
            vocabulary=self.world_model.arguments.vocabulary,
        )
        generator = torch.Generator().manual_seed(self.seed)

        env.reset(options=_HERE)
        start_ms = env.cost.runtime_ms
        best = _Best(graph, start_ms, env.trajectory())
        milestones = [_milestone(env, started, best)]

        episodes = self._episodes(generator)[: budget.expansions]
        for done, (source, candidates) in enumerate(episodes, start=1):
            if budget.time_s is not None and time.perf_counter() - started >= budget.time_s:
                break
            found = self._episode(env, source, candidates)
            if found.runtime_ms < best.runtime_ms:
                best = found
                milestones.append(_milestone(env, started, best))
            if on_progress:
                on_progress(done / len(episodes), f"best {best.runtime_ms:.3f} ms after {done} episodes")

        wall_time_s = time.perf_counter() - started
        return OptimisationResult(
            best=best.graph,
            best_ms=best.runtime_ms,
            start_ms=start_ms,
            trajectory=best.trajectory,
            wall_time_s=wall_time_s,
            effort=env.evaluator.effort,
            milestones=tuple(milestones),
        )

    @cached_property
    def _alignment(self) -> RuleAlignment:
        """Made once, so that rules that the model has never seen are warned of once."""
        return RuleAlignment.of(self.world_model.arguments.rule_ids, [r.id for r in self.library.rules])

    def _episodes(self, generator: torch.Generator) -> list[tuple[torch.Generator | None, int]]:
        """One entry per episode: the generator that draws its actions (None: the most probable ones), and the tries."""
        likeliest: list[tuple[torch.Generator | None, int]] = [(None, 1)]
        if self.candidates > 1:
            likeliest.append((None, self.candidates))
        return likeliest + [(generator, self.candidates)] * self.sampled_episodes

    def _episode(self, env: SubstitutionEnv, generator: torch.Generator | None, candidates: int) -> _Best:
        """Play one episode; returns its best graph. With a generator, actions are drawn."""
        env.reset(options=_HERE)
        alignment = self._alignment
        layout = latent_state.layout_of(self.world_model)
        state = latent_state.begin(self.world_model, env.graph_arrays(), alignment.counts(env.counts()), 100.0)

        best = _Best(env.graph, env.cost.runtime_ms, env.trajectory())
        ended = False
        while not ended:
            observation = state.observation(layout)
            chosen = self.controller.act(observation, generator is None, generator)
            action = (int(chosen[0]), int(chosen[1]))

            if candidates > 1:
                proposed = self.controller.likeliest_rewrites(observation, candidates, generator)
                action = self._cheapest(env, alignment, proposed) or action

            _, _, terminated, truncated, _ = env.step(alignment.action(*action))
            ended = terminated or truncated
            if terminated:
                break

            if env.cost.runtime_ms < best.runtime_ms:
                best = _Best(env.graph, env.cost.runtime_ms, env.trajectory())

            percent = 100.0 * env.cost.runtime_ms / env.start_cost.runtime_ms
            counts = alignment.counts(env.counts())
            state = latent_state.advance(self.world_model, state, action, env.graph_arrays(), counts, percent)
        return best

    def _cheapest(
        self, env: SubstitutionEnv, alignment: RuleAlignment, rewrites: list[tuple[int, int]]
    ) -> tuple[int, int] | None:
        """The one of these rewrites that leads to the cheapest graph, ties to the first; None if none saves anything.

        rewrites: (rule, location) in the world model's order of rules.
        """
        matches = self.rewriter.matches(env.graph)
        actions = ((rewrite, alignment.action(*rewrite)) for rewrite in rewrites)
        places = ((rewrite, matches[rule][location]) for rewrite, (rule, location) in actions)
        foreseen = env.evaluator.foreseen(env.graph, places)
        costs = {rewrite: env.evaluator.runtime_after_ms(env.graph, match) for rewrite, match in foreseen}
        cheapest = min(costs, key=costs.__getitem__, default=None)
        if cheapest is None or costs[cheapest] >= env.cost.runtime_ms:
            return None
        return cheapest


def _milestone(env: SubstitutionEnv, started: float, best: _Best) -> Milestone:
    effort, wall_time_s = env.evaluator.effort, time.perf_counter() - started
    return Milestone(effort.rewrites, effort.prices_measured, wall_time_s, best.runtime_ms)


def judge_on(
    graph: Graph,
    library: Library,
    rewriter: Rewriter,
    cost_model: CostModel,
    world_model: WorldModel,
    environment: EnvironmentConfig,
) -> Judge[Controller]:
    """A judge that tries controllers on this graph: one episode of their most probable actions, with no tries."""

    def judge(controller: Controller) -> Trial:
        alone = PolicyOptimiser(
            library, rewriter, cost_model, world_model, controller, environment, sampled_episodes=0, candidates=1
        )
        result = alone.optimise(graph, Budget())
        return Trial(result.improvement_percent, result.effort.rewrites)

    return judge
