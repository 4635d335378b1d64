"""The reward of one step on a real graph, in percent of the episode's start (docs/spaces.md).

    reward = reward_of(RewardConfig("incremental"))               for the life of an environment
    reward(Transition([start, *states, state], ended=False))

Most rewards are computed: pure functions of costs (`step_reward`). `end_to_end` times graphs instead, remembers what it
has timed, and tells in its `figures` what that took.
"""

from __future__ import annotations

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
        return float(self.config.of_step(transition.change))

    def figures(self) -> dict[str, float]:
        return {}

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """There is nothing to go on from."""
