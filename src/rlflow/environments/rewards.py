"""The reward of one step, in percent of the episode's start (docs/spaces.md).

    reward = reward_of(RewardConfig("incremental"))               for the life of an environment
    reward(Transition([start, *states, state], ended=False))

Most rewards are computed: pure functions of costs. `end_to_end` times graphs instead, remembers what it has timed, and
tells in its `figures` what that took.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from rlflow.environments.end_to_end import EndToEnd
from rlflow.environments.reward_config import RewardConfig as RewardConfig
from rlflow.environments.transition import Transition


class Reward(Protocol):
    """The reward of the steps of one environment."""

    @property
    def config(self) -> RewardConfig: ...

    def __call__(self, transition: Transition) -> float:
        """The reward of a valid step, in percent of the start."""
        ...

    def figures(self) -> dict[str, float]:
        """Figures of what the rewards have cost so far; none if they are computed."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """All that is remembered from step to step, as plain values."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned."""
        ...


def reward_of(config: RewardConfig) -> Reward:
    """The configured reward, for one environment; nothing is measured yet."""
    return EndToEnd(config) if config.kind == "end_to_end" else _Computed(config)


@dataclass(frozen=True)
class _Computed:
    """A reward that is a function of costs, and remembers nothing."""

    config: RewardConfig

    def __call__(self, transition: Transition) -> float:
        return _FUNCTIONS[self.config.kind](transition, self.config)

    def figures(self) -> dict[str, float]:
        return {}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """There is nothing to go on from."""


def _saved_percent(before: float, after: float, start: float) -> float:
    return 100.0 * (before - after) / start if start else 0.0


def incremental(t: Transition, config: RewardConfig) -> float:
    """RT(t-1) - RT(t) (equation 2): an episode's rewards add up to its total improvement."""
    return _saved_percent(t.before.runtime_ms, t.after.runtime_ms, t.start.runtime_ms)


def runtime(t: Transition, config: RewardConfig) -> float:
    """-RT(t) (R2 of Figure 5)."""
    return -100.0 * t.after.runtime_ms / t.start.runtime_ms if t.start.runtime_ms else 0.0


def weighted(t: Transition, config: RewardConfig) -> float:
    """alpha dRT + beta dM (equation 3), where M are the memory accesses."""
    memory = _saved_percent(t.before.bytes_moved, t.after.bytes_moved, t.start.bytes_moved)
    return config.alpha * incremental(t, config) + config.beta * memory


def terminal(t: Transition, config: RewardConfig) -> float:
    """0 until the end, then the total improvement."""
    return _saved_percent(t.start.runtime_ms, t.after.runtime_ms, t.start.runtime_ms) if t.ended else 0.0


_FUNCTIONS: Mapping[str, Callable[[Transition, RewardConfig], float]] = {
    "incremental": incremental,
    "runtime": runtime,
    "weighted": weighted,
    "terminal": terminal,
}
