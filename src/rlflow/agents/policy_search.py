"""A trained policy as a search: it acts on the real graph as it learned to act in the dream.

    result = search.optimise(graph, Budget())          a `PolicySearch` of one of the world models
    search.after_greedy().optimise(graph, Budget())    never worse than greedy search

It plays episodes: first with the most probable actions, then `sampled_episodes` drawn ones. In the first one the policy
acts alone. In all others, with `candidates` above 1, it only proposes: that many of its likeliest rewrites are tried on
the real graph, and the cheapest is taken if it saves anything. If none does, the policy's own action is taken, which
may be a loss for a later gain, or the end.

The invariant: the result is never worse than the graph it began with, since the best graph of all episodes is kept.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import torch

from rlflow.agents.player import Player
from rlflow.agents.selection import Judge, Trial
from rlflow.ir.graph import Graph
from rlflow.method import Budget, OnProgress, State, Workspace
from rlflow.search.base import Search
from rlflow.search.greedy import Greedy
from rlflow.trajectory.record import Trajectory

Controller = TypeVar("Controller")


@dataclass(frozen=True)
class Visits:
    """The trajectories to the best graphs of a policy's episodes, and the rewrites that were carried out for them."""

    trajectories: list[Trajectory]
    rewrites: int


@dataclass(frozen=True, kw_only=True)
class PolicySearch(Search):
    """A search of which one expansion of the budget is one episode.

    Episodes begin at the state that is to be improved, as a dream does, and may end above what greedy search finds in a
    moment. So `before` is a search that goes first, from the same state, by rules that count their matches alike.
    """

    sampled_episodes: int = 4
    candidates: int = 16
    seed: int = 0
    before: Search | None = None
    name: str = "rlflow"

    @abstractmethod
    def player(self, work: Workspace, state: State) -> Player[Any, Any]:
        """Return the player of episodes from this state. `InputError` if the policy does not match what it sees by."""

    def improve(self, work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
        """Return the best state of all episodes, and of the search before them."""
        best = state if self.before is None else _followed(self.before, work, state)
        if work.is_spent or not state.runtime_ms:
            return best
        player, episodes = self.player(work, state), self._episodes()[: work.ledger.expansions_left]
        for done, (generator, candidates) in enumerate(episodes, start=1):
            if work.is_spent:
                break
            found = work.note(player.play(generator, candidates))
            best = min(best, found, key=lambda s: s.runtime_ms)
            if on_progress:
                on_progress(done / len(episodes), f"best {best.runtime_ms:.3f} ms after {done} episodes")
        return best

    def after_greedy(self) -> Self:
        """Return the same after greedy search by the same rules and prices."""
        return replace(self, before=Greedy(self.library, self.rewriter, self.cost_model))

    def visits(self, graph: Graph, drawn: int) -> Visits:
        """Return where the policy goes by itself, by its most probable actions and in so many drawn episodes."""
        work = self.begin(graph, Budget())
        player, generator = self.player(work, work.start), torch.Generator().manual_seed(self.seed)
        found = [player.play(source, candidates=1) for source in [None, *[generator] * drawn]]
        return Visits([work.trajectory(work.start, best) for best in found], work.ledger.effort.rewrites)

    def _episodes(self) -> list[tuple[torch.Generator | None, int]]:
        """One entry per episode: the generator that draws its actions (None: the most probable ones), and the tries."""
        generator = torch.Generator().manual_seed(self.seed)
        likeliest: list[tuple[torch.Generator | None, int]] = [(None, 1)]
        if self.candidates > 1:
            likeliest.append((None, self.candidates))
        return likeliest + [(generator, self.candidates)] * self.sampled_episodes


@dataclass(frozen=True)
class WorldModelSearch(PolicySearch):
    """A policy that sees graphs through a world model, which it was trained in the dream of."""

    world_model: Any
    controller: Any

    def untrained(self) -> Self:
        """Return the same with the controller as it was before its training."""
        return replace(self, controller=self.controller.untrained(self.controller.arguments, seed=self.seed))


def _followed(search: Search, work: Workspace, state: State) -> State:
    """Return what another search makes of a state, on the same account, as a state on the way from there."""
    inside = search.inside(state.graph, work.ledger)
    for found in search.improve(inside, inside.start).path()[1:]:
        state = State(found.graph, found.runtime_ms, state, found.action)
    return state


def judge_on(graph: Graph, alone: Callable[[Controller], PolicySearch]) -> Judge[Controller]:
    """A judge that tries controllers on this graph.

    alone: makes a search by one, which plays a single episode of its most probable actions, with no tries.
    """

    def judge(controller: Controller) -> Trial:
        result = alone(controller).optimise(graph, Budget())
        return Trial(result.improvement_percent, result.effort.rewrites)

    return judge
