"""The protocol of a rewriting process: in each state of a graph a policy chooses the next rewrite.

    state = process.start()
    while choices := process.choices(state):
        state = process.step(state, policy(process.observe(state), choices))

A formulation is a class that says what the choices are and what is observed: a rule and a location, one of some
candidate graphs, a class of alike matches. All else is there for any process:

    ProcessEnv                                      a Gymnasium environment: ends, rewards, trajectories (`process_env`)
    RealEpisodes(process, ...)                      episodes side by side, for MaskablePPO (`agents.real_episodes`)
    Player(work, state, process, controller, ...)   a trained policy as a search (`agents.player`)

The invariant: a state depends on the start and on the choices that led to it alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, Self, TypeVar

import numpy as np

from rlflow.cost.base import Cost
from rlflow.cost.evaluator import Evaluator
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.rules.matching.rewriter import Location


@dataclass(frozen=True, eq=False)
class ProcessState:
    """A graph on the way, which is hashed and priced when that is first asked for.

    memory: what a policy remembers of the steps that led there, if it remembers any.
    """

    graph: Graph
    evaluator: Evaluator
    memory: Any = field(default=None, init=False)

    @cached_property
    def hash(self) -> str:
        return structural_hash(self.graph)

    @cached_property
    def runtime_ms(self) -> float:
        return self.evaluator.confirmed_ms(self.graph)

    @cached_property
    def cost(self) -> Cost:
        """The price with all that belongs to it."""
        return self.evaluator.cost(self.graph)

    def remembering(self, memory: Any) -> Self:
        """Return the same state with a memory."""
        other = copy(self)
        object.__setattr__(other, "memory", memory)
        return other


S = TypeVar("S", bound=ProcessState)
C = TypeVar("C")


class Process(ABC, Generic[S, C]):
    """Rewrites one graph. Its `evaluator` carries out and prices all rewrites, and counts them."""

    evaluator: Evaluator

    @abstractmethod
    def start(self) -> S:
        """Return the state before any rewrite."""

    @abstractmethod
    def choices(self, state: S) -> Collection[C]:
        """Return what can be chosen; an episode ends where nothing can."""

    @abstractmethod
    def step(self, state: S, choice: C) -> S:
        """Carry out a choice; return the state that it leads to."""

    @abstractmethod
    def observe(self, state: S) -> Any:
        """Return what a policy sees: an array, or arrays by name."""

    @abstractmethod
    def location(self, state: S, choice: C) -> Location:
        """Return the rewrite that a choice stands for, or the first of several, as trajectories record it."""

    def way(self, before: S, choice: C, after: S) -> Sequence[tuple[Location, ProcessState]]:
        """Return the rewrites that a choice stood for, each with the graph that it led to."""
        return [(self.location(before, choice), after)]

    def observed_by(self, observe: Callable[[S], Any]) -> Self:
        """Return the same process, observed in another way."""
        other = copy(self)
        vars(other)["observe"] = observe
        return other

    def savings(self, state: S, choices: Sequence[C]) -> np.ndarray:
        """(N,) float: what some choices save, in ms or any other unit. They are priced, mostly without carrying out."""
        matches, places = self.evaluator.rewriter.matches(state.graph), [self.location(state, one) for one in choices]
        found = [matches[place.rule][place.location] for place in places]
        return state.runtime_ms - np.array(self.evaluator.runtimes_after_ms(state.graph, found), np.float64)

    def saved_percent(self, before: ProcessState, after: ProcessState) -> float | None:
        """Return what trajectories say that a rewrite saved; None: the difference of the two prices."""
        return None

    def state_dict(self) -> dict[str, Any]:
        """Return what observations depend on besides the state, if anything."""
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
