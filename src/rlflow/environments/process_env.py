"""A process as a Gymnasium environment: actions, ends, rewards, trajectories and pictures.

A formulation adds its spaces, the masks of its actions, and which choice an action means.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Generic

import gymnasium

from rlflow.environments.episode import Episode
from rlflow.environments.process import C, Process, S
from rlflow.environments.rewards import RewardConfig, reward_of
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.rules.library import Library
from rlflow.trajectory.record import Trajectory

Observation = dict[str, Any]


class ProcessEnv(gymnasium.Env[Observation, Any], ABC, Generic[S, C]):
    """Episodes of at most `max_steps` actions, one after another.

    An invalid action leaves the graph as it is and earns `reward.config.invalid`. The horizon truncates. `info` has the
    graph's runtime, `matches_beyond_limit`, `valid`, and what a measured reward has cost so far.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        process: Process[S, C],
        library: Library,
        max_steps: int,
        reward_config: RewardConfig | None,
        render_mode: str | None,
    ) -> None:
        if render_mode not in (None, "ansi"):
            raise InputError(f"unknown render mode {render_mode!r}: choose 'ansi' or None")
        self.library, self.max_steps, self.render_mode = library, max_steps, render_mode
        self.reward = reward_of(reward_config or RewardConfig())
        self._process = process
        self._episode: Episode[S, C] | None = None
        self._seed: int | None = None

    @abstractmethod
    def choice(self, action: Any) -> C | None:
        """Return the choice that an action means, whether it is there or not; None for the one that terminates."""

    @abstractmethod
    def details(self, state: S) -> dict[str, Any]:
        """Return what `info` says of a state beside its runtime."""

    @abstractmethod
    def lines(self, state: S) -> Iterator[str]:
        """Yield the lines of a picture of a state below the first, which tells its size and price."""

    def first(self, options: dict[str, Any]) -> S:
        """Return the state in which an episode begins."""
        return self._process.start()

    @property
    def state(self) -> S:
        """The present state. `InputError` before the first reset."""
        return self._begun.state

    @property
    def graph(self) -> Graph:
        """The present graph."""
        return self.state.graph

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Begin an episode."""
        super().reset(seed=seed)
        self._seed, visited = seed, [self.first(options or {})]
        self._episode = Episode(self._process, self.reward, self.max_steps, visited)
        return self._process.observe(self.state), self._info()

    def step(self, action: Any) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take an action; returns observation, reward in percent of the start, terminated, truncated, and info."""
        earned, terminated, truncated, valid = self._begun.act(self.choice(action))
        info = self._info() | {"valid": valid}
        return self._process.observe(self.state), earned, terminated, truncated, info

    def trajectory(self) -> Trajectory:
        """The episode so far, without invalid actions, which changed nothing."""
        start, evaluator = self._begun.visited[0], self._process.evaluator
        return Trajectory(
            start_hash=start.hash,
            start_runtime_ms=start.runtime_ms,
            cost_model=evaluator.cost_model.name,
            library=self.library.hash,
            steps=tuple(self._begun.steps()),
            seed=self._seed,
            matching=evaluator.rewriter.matching,
        )

    def render(self) -> str | None:  # type: ignore[override]
        """The present state as text, with `render_mode="ansi"`; otherwise None."""
        if self.render_mode is None:
            return None
        state = self.state
        head = f"graph {state.hash}: {len(state.graph.order)} nodes, {state.runtime_ms:.4f} ms"
        return "\n".join([head, *self.lines(state)])

    @property
    def _begun(self) -> Episode[S, C]:
        if self._episode is None:
            raise InputError("call reset() before anything else")
        return self._episode

    def _info(self) -> dict[str, Any]:
        return {"runtime_ms": self.state.runtime_ms, **self.details(self.state), **self.reward.figures()}
