"""Episodes of a trained policy on a real graph, inside a search.

    player = Player(work, state, process, controller, max_steps=30)
    found = player.play(None, candidates=1)             by its most probable actions
    found = player.play(generator, candidates=16)       by drawn ones, each the cheapest of 16 that are tried

The invariant: every rewrite goes through the workspace's evaluator, and so is counted and priced as those of searches.
"""

from __future__ import annotations

from typing import Any, Generic, Protocol

from rlflow.method import State, Workspace
from rlflow.processes.process import C, Process, ProcessState, S


class Controller(Protocol):
    """A policy as a player asks it. generator: draws actions; None: the most probable ones."""

    def choose(self, observation: Any, generator: Any = None) -> Any:
        """Return the choice that is taken next, or one that there is not, which is to terminate."""

    def likeliest(self, observation: Any, number: int, generator: Any = None) -> list[Any]:
        """Return up to `number` choices, the most probable first or drawn without replacement."""


class Player(Generic[S, C]):
    """Plays episodes of a process from one state of a workspace, whose evaluator carries out and prices all rewrites.

    max_steps: the horizon of an episode.
    """

    def __init__(
        self, work: Workspace, start: State, process: Process[S, C], controller: Controller, max_steps: int
    ) -> None:
        self.work, self.start, self.process = work, start, process
        self.controller, self.max_steps = controller, max_steps

    def play(self, generator: Any, candidates: int) -> State:
        """Play one episode, with the most probable actions or, with a generator, drawn ones; return its cheapest state.

        candidates: the policy's likeliest rewrites that are tried before each step; 1: it acts alone. The episode ends
        as soon as the workspace is spent.
        """
        process, before, state, best = self.process, self.process.start(), self.start, self.start
        for _ in range(self.max_steps):
            choices = process.choices(before)
            if not choices or self.work.is_spent:
                break
            choice = self._chosen(before, generator, candidates)
            if choice not in choices:
                break
            after = process.step(before, choice)
            last: ProcessState = before
            for location, passed in process.way(before, choice, after):
                state = State(passed.graph, passed.runtime_ms, state, location, process.saved_percent(last, passed))
                best, last = min(best, state, key=lambda s: s.runtime_ms), passed
            before = after
        return best

    def _chosen(self, state: S, generator: Any, candidates: int) -> C:
        """Return the choice that is taken next; one that there is not is terminate."""
        observation = self.process.observe(state)
        chosen: C = self.controller.choose(observation, generator)
        if candidates == 1:
            return chosen
        likeliest: list[C] = self.controller.likeliest(observation, candidates, generator)
        saving = self.process.savings(state, likeliest)
        return likeliest[int(saving.argmax())] if saving.max(initial=0.0) > 0 else chosen
