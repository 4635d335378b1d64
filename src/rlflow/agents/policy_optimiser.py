"""A trained policy as an optimiser: it acts on the real graph as it learned to act in the dream.

    result = optimiser.optimise(graph, Budget())          a `PolicyOptimiser` of one of the world models

It plays episodes: first with the most probable actions, then `sampled_episodes` drawn ones. In the first one the policy
acts alone. In all others, with `candidates` above 1, it only proposes: that many of its likeliest rewrites are tried on
the real graph, and the cheapest is taken if it saves anything. If none does, the policy's own action is taken, which
may be a loss for a later gain, or the end.

The invariant: the result is never worse than the graph it began with, since the best graph of all episodes is kept.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import torch

from rlflow.agents.pointing_controller import PointingController
from rlflow.agents.selection import Judge, Trial
from rlflow.cost.evaluator import Evaluator
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.method import Budget, Milestone, OnProgress, OptimisationResult, never
from rlflow.trajectory.record import Step, Trajectory

Controller = TypeVar("Controller")
Seen = TypeVar("Seen")


@dataclass(frozen=True)
class Best:
    """The cheapest graph of an episode and the way to it."""

    graph: Graph
    runtime_ms: float
    trajectory: Trajectory


@dataclass(frozen=True)
class Visits:
    """The ways to the best graphs of a policy's episodes, and the rewrites that were carried out for them."""

    ways: list[Trajectory]
    rewrites: int


class Player(ABC):
    """Plays episodes on one graph; everything that it carries out and prices goes through `evaluator`."""

    evaluator: Evaluator

    @abstractmethod
    def start(self) -> Best:
        """Return the graph before any rewrite."""

    @abstractmethod
    def play(self, generator: torch.Generator | None, candidates: int, is_over: Callable[[], bool] = never) -> Best:
        """Play one episode, with the most probable actions or, with a generator, drawn ones.

        candidates: the policy's likeliest rewrites that are tried before each step; 1: it acts alone. is_over: asked
        before each step; the episode ends as soon as it says so.
        """


class PointingPlayer(Player, Generic[Seen]):
    """Plays with a policy that points at one of the things that it sees, of which each is a rewrite.

    start_ms: the price before any rewrite. library_hash: for trajectories. max_steps: the horizon of an episode.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        start_ms: float,
        controller: PointingController,
        library_hash: str,
        max_steps: int,
    ) -> None:
        self.evaluator, self.start_ms, self.controller = evaluator, start_ms, controller
        self.library_hash, self.max_steps = library_hash, max_steps

    @abstractmethod
    def begun(self) -> Seen:
        """Return what is seen before any rewrite."""

    @abstractmethod
    def things(self, seen: Seen) -> int:
        """Return how many things are seen; an episode ends where there are none."""

    @abstractmethod
    def graph(self, seen: Seen) -> Graph:
        """Return the graph that is seen."""

    @abstractmethod
    def observation(self, seen: Seen) -> np.ndarray:
        """Return what the policy is told."""

    @abstractmethod
    def saving(self, seen: Seen, things: Sequence[int]) -> np.ndarray:
        """Return what the rewrites of some things save, in any unit."""

    @abstractmethod
    def after(self, seen: Seen, thing: int) -> tuple[Seen, Step]:
        """Carry out the rewrite of a thing; return what is seen then, and the step."""

    def start(self) -> Best:
        return self._best(self.graph(self.begun()), [])

    def play(self, generator: torch.Generator | None, candidates: int, is_over: Callable[[], bool] = never) -> Best:
        seen, best, taken = self.begun(), self.start(), list[Step]()
        while len(taken) < self.max_steps and self.things(seen) and not is_over():
            thing = self._chosen(seen, generator, candidates)
            if thing >= self.things(seen):
                break
            seen, step = self.after(seen, thing)
            taken.append(step)
            if step.runtime_ms < best.runtime_ms:
                best = self._best(self.graph(seen), taken)
        return best

    def _chosen(self, seen: Seen, generator: torch.Generator | None, candidates: int) -> int:
        """The thing that is taken next; one beyond all things is terminate."""
        observation = self.observation(seen)
        action = int(self.controller.act(observation, generator is None, generator))
        if candidates == 1:
            return action
        likeliest = self.controller.likeliest(observation, candidates, generator)
        saving = self.saving(seen, likeliest)
        return likeliest[int(saving.argmax())] if saving.max(initial=0.0) > 0 else action

    def _best(self, graph: Graph, taken: list[Step]) -> Best:
        trajectory = Trajectory(
            start_hash=structural_hash(self.graph(self.begun())),
            start_runtime_ms=self.start_ms,
            cost_model=self.evaluator.cost_model.name,
            library=self.library_hash,
            steps=tuple(taken),
            matching=self.evaluator.rewriter.matching,
        )
        return Best(graph, taken[-1].runtime_ms if taken else self.start_ms, trajectory)


@dataclass(frozen=True, kw_only=True)
class PolicyOptimiser(ABC):
    """An optimiser of which one expansion of the budget is one episode."""

    sampled_episodes: int = 4
    candidates: int = 16
    seed: int = 0
    name: str = "rlflow"

    @abstractmethod
    def player(self, graph: Graph) -> Player:
        """Return what plays on this graph. `InputError` if the policy does not belong to what it sees by."""

    def optimise(self, graph: Graph, budget: Budget, on_progress: OnProgress | None = None) -> OptimisationResult:
        """The best graph of all episodes."""
        started = time.perf_counter()
        player = self.player(graph)
        generator = torch.Generator().manual_seed(self.seed)

        def is_over() -> bool:
            is_late = budget.time_s is not None and time.perf_counter() - started >= budget.time_s
            is_spent = budget.rewrites is not None and player.evaluator.effort.rewrites >= budget.rewrites
            return is_late or is_spent or budget.is_called_off()

        best = start = player.start()
        milestones = [_milestone(player, started, best)]
        episodes = self._episodes(generator)[: budget.expansions]
        for done, (source, candidates) in enumerate(episodes, start=1):
            if is_over():
                break
            found = player.play(source, candidates, is_over)
            if found.runtime_ms < best.runtime_ms:
                best = found
                milestones.append(_milestone(player, started, best))
            if on_progress:
                on_progress(done / len(episodes), f"best {best.runtime_ms:.3f} ms after {done} episodes")

        return OptimisationResult(
            best=best.graph,
            best_ms=best.runtime_ms,
            start_ms=start.runtime_ms,
            trajectory=best.trajectory,
            wall_time_s=time.perf_counter() - started,
            effort=player.evaluator.effort,
            milestones=tuple(milestones),
        )

    def visits(self, graph: Graph, drawn: int) -> Visits:
        """Return where the policy goes by itself, by its most probable actions and in so many drawn episodes."""
        player, generator = self.player(graph), torch.Generator().manual_seed(self.seed)
        ways = [player.play(source, candidates=1).trajectory for source in [None, *[generator] * drawn]]
        return Visits(ways, player.evaluator.effort.rewrites)

    def _episodes(self, generator: torch.Generator) -> list[tuple[torch.Generator | None, int]]:
        """One entry per episode: the generator that draws its actions (None: the most probable ones), and the tries."""
        likeliest: list[tuple[torch.Generator | None, int]] = [(None, 1)]
        if self.candidates > 1:
            likeliest.append((None, self.candidates))
        return likeliest + [(generator, self.candidates)] * self.sampled_episodes


def _milestone(player: Player, started: float, best: Best) -> Milestone:
    effort, wall_time_s = player.evaluator.effort, time.perf_counter() - started
    return Milestone(effort.rewrites, effort.prices_measured, wall_time_s, best.runtime_ms)


def judge_on(graph: Graph, alone: Callable[[Controller], PolicyOptimiser]) -> Judge[Controller]:
    """A judge that tries controllers on this graph.

    alone: makes an optimiser of one, which plays a single episode of its most probable actions, with no tries.
    """

    def judge(controller: Controller) -> Trial:
        result = alone(controller).optimise(graph, Budget())
        return Trial(result.improvement_percent, result.effort.rewrites)

    return judge
