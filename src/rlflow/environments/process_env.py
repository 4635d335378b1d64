"""A process as a Gymnasium environment: actions, ends, rewards, trajectories and pictures.

    class SubstitutionEnv(ProcessEnv[SubstitutionProcess]):
        formulation, settings = SubstitutionProcess, EnvironmentConfig
        ...

A formulation adds its spaces, the masks of its actions, and which choice an action means.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from typing import Any, Generic, Self, TypeVar

import gymnasium
import numpy as np
from gymnasium import spaces

from rlflow.cost.base import CostModel
from rlflow.environments.episode import Episode
from rlflow.environments.rewards import RewardConfig, reward_of
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.plugins import unknown
from rlflow.processes.process import Process
from rlflow.representation.vocabulary import Vocabulary
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.record import Trajectory

RENDER_MODES = ("ansi", "rgb_array")
P = TypeVar("P", bound=Process[Any, Any])


class ProcessEnv(gymnasium.Env[Any, Any], ABC, Generic[P]):
    """Episodes of at most `config.max_steps` actions, one after another.

    An invalid action leaves the graph as it is and earns `reward.config.invalid`. The horizon truncates. `info` has the
    graph's runtime, what `details` says, `valid`, and what a measured reward has cost so far. Graphs are written in
    `vocabulary`, today's by default: an agent that was trained earlier gives its own.
    """

    metadata: dict[str, Any] = {"render_modes": [*RENDER_MODES], "render_fps": 1}  # noqa: RUF012
    formulation: Callable[..., P]
    settings: type[Any]

    def __init__(
        self,
        graph: Graph,
        library: Library,
        cost_model: CostModel,
        *,
        config: Any = None,
        reward_config: RewardConfig | None = None,
        rewriter: Rewriter | None = None,
        vocabulary: Vocabulary | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, *RENDER_MODES):
            raise InputError(unknown("render mode", render_mode, RENDER_MODES))
        kind = type(self)
        self.library, self.render_mode, self.config = library, render_mode, config or kind.settings()
        rules = rewriter or Rewriter(library.rules)
        self.process: P = kind.formulation(graph, rules, cost_model, self.config, vocabulary)
        self.reward = reward_of(reward_config or RewardConfig())
        self.action_space, self.observation_space = self.make_spaces()
        self._episode: Episode[Any, Any] | None = None
        self._seed: int | None = None

    @abstractmethod
    def make_spaces(self) -> tuple[spaces.Space[Any], spaces.Space[Any]]:
        """Return the space of actions and that of observations."""

    @abstractmethod
    def choice(self, action: Any) -> Any:
        """Return the choice that an action means, whether it is there or not; None for the one that terminates."""

    @abstractmethod
    def action_masks(self) -> np.ndarray:
        """The actions that are valid, as MaskablePPO asks for them."""

    @abstractmethod
    def details(self) -> dict[str, Any]:
        """Return what `info` says of the present state beside its runtime."""

    @abstractmethod
    def lines(self) -> Iterator[str]:
        """Yield the lines of the text below the first, which tells the size of the graph and its price."""

    def first(self, options: dict[str, Any]) -> Any:
        """Return the state in which an episode begins."""
        return self.process.start()

    @property
    def state(self) -> Any:
        """The present state of the process. `InputError` before the first reset."""
        return self._begun.state

    @property
    def graph(self) -> Graph:
        """The present graph."""
        return self._begun.state.graph

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        self._seed, visited = seed, [self.first(options or {})]
        self._episode = Episode(self.process, self.reward, self.config.max_steps, visited)
        return self.process.observe(self.state), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action; returns observation, reward in percent of the start, terminated, truncated, and info."""
        earned, terminated, truncated, valid = self._begun.act(self.choice(action))
        return self.process.observe(self.state), earned, terminated, truncated, self._info() | {"valid": valid}

    def trajectory(self) -> Trajectory:
        """The episode so far, without invalid actions, which changed nothing."""
        start, evaluator = self._begun.visited[0], self.process.evaluator
        return Trajectory(
            start_hash=start.hash,
            start_runtime_ms=start.runtime_ms,
            cost_model=evaluator.cost_model.name,
            library=self.library.hash,
            steps=tuple(self._begun.steps()),
            seed=self._seed,
            matching=evaluator.rewriter.matching,
        )

    def undo(self) -> tuple[Any, dict[str, Any]]:
        """Go back to before the last action, refused or not, and observe. `InputError` where the episode began."""
        self._begun.undo()
        return self.process.observe(self.state), self._info()

    def fork(self) -> Self:
        """Another environment in the same state, which goes its own way from here; graphs are shared."""
        other = copy(self)
        other._episode, other._np_random = self._begun.fork(), deepcopy(self._np_random)
        other.action_space, other.observation_space = deepcopy((self.action_space, self.observation_space))
        return other

    def render(self) -> str | np.ndarray | None:  # type: ignore[override]
        """The present state in the render mode: text, or (H, W, 3) uint8, the graph beside that of the start."""
        if self.render_mode == "rgb_array":
            from rlflow.show.frame import frame  # the extra plots is needed by nobody else

            return frame(self._begun.visited[0].graph, self.graph)
        if self.render_mode is None:
            return None
        state = self.state
        head = f"graph {state.hash}: {len(state.graph.order)} nodes, {state.runtime_ms:.4f} ms"
        return "\n".join([head, *self.lines()])

    @property
    def _begun(self) -> Episode[Any, Any]:
        if self._episode is None:
            raise InputError("call reset() before anything else")
        return self._episode

    def _info(self) -> dict[str, Any]:
        return {"runtime_ms": self.state.runtime_ms, **self.details(), **self.reward.figures()}
