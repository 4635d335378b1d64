"""The process that a controller over classes of matches acts in, on a real graph.

A choice is a class of matches, all of which are carried out, one after another. A subclass says what is observed. The
controller remembers how near each class is to the last rewrites, and where the episode began.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from rlflow.processes.process import Process, ProcessState
from rlflow.processes.token_process import MatchLevelState, TokenProcess
from rlflow.representation.match_token import MatchToken
from rlflow.representation.token_rollouts import FAR_AWAY, nearness_after
from rlflow.rules.matching.rewriter import Location


class ClassesSeen(NamedTuple):
    """The memory of a state of K classes of matches, and of how the episode came there.

    token (K,) int64: the numbers of their tokens; near (K,) int8: how near they are to the last rewrites. begun: the
    price where the episode began, in percent of the start's. way: the rewrites of the last choice, each with the graph
    that it led to.
    """

    token: np.ndarray
    near: np.ndarray
    begun: float
    way: Sequence[tuple[Location, ProcessState]] = ()


class ClassProcess(Process[MatchLevelState, int]):
    """A process of which choices are places of the classes that are shown."""

    def __init__(self, process: TokenProcess) -> None:
        self.process, self.evaluator = process, process.evaluator

    @abstractmethod
    def numbers(self, tokens: Sequence[MatchToken]) -> np.ndarray:
        """Return a number (K,) int64 of each token, the same whenever it is met."""

    def start(self) -> MatchLevelState:
        return self._start

    def choices(self, state: MatchLevelState) -> range:
        return range(len(self.shown(state)))

    def step(self, state: MatchLevelState, choice: int) -> MatchLevelState:
        after, step, way = self.process.step(state, self._kind(state, choice))
        before: ClassesSeen = state.memory
        token = self.numbers(after.classes.tokens)
        near = nearness_after(before.token, step, token)
        return after.remembering(ClassesSeen(token, near, before.begun, way))

    def way(
        self, before: MatchLevelState, choice: int, after: MatchLevelState
    ) -> Sequence[tuple[Location, ProcessState]]:
        seen: ClassesSeen = after.memory
        return seen.way

    def location(self, state: MatchLevelState, choice: int) -> Location:
        location, _ = state.classes.matches[state.first(self._kind(state, choice))]
        return location

    def savings(self, state: MatchLevelState, choices: Sequence[int]) -> np.ndarray:
        """(N,) float: what the first match saves, times the matches apart, in percent of the start's price."""
        classes = [self._kind(state, choice) for choice in choices]
        return state.saving_of(classes) * state.classes.apart[classes]

    def saved_percent(self, before: ProcessState, after: ProcessState) -> float | None:
        return 100.0 * (before.runtime_ms - after.runtime_ms) / self.process.start_ms

    def shown(self, state: MatchLevelState) -> np.ndarray:
        """(P,) int64: the classes that are shown: all, in the order of their first matches."""
        return np.arange(len(state.classes.tokens))

    @cached_property
    def _start(self) -> MatchLevelState:
        state = self.process.start()
        token = self.numbers(state.classes.tokens)
        return state.remembering(ClassesSeen(token, np.full(len(token), FAR_AWAY, np.int8), state.percent))

    def _kind(self, state: MatchLevelState, choice: int) -> int:
        return int(self.shown(state)[choice])
