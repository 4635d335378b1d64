"""The reward of one step: pure functions of costs, all in percent of the episode's start (docs/spaces.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rlflow.cost.base import Cost
from rlflow.errors import InputError


@dataclass(frozen=True)
class RewardConfig:
    """The reward by name, one of `KINDS`; alpha and beta weigh runtime and memory accesses in `weighted`."""

    kind: str = "incremental"
    alpha: float = 0.8
    beta: float = 0.2
    invalid: float = -100.0

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"unknown reward {self.kind!r}: choose one of {', '.join(KINDS)}")


@dataclass(frozen=True)
class Transition:
    """The costs at the start of the episode, before and after the step, and the end of the episode if this is it."""

    start: Cost
    before: Cost
    after: Cost
    ended: bool


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
KINDS = tuple(_FUNCTIONS)


def reward(transition: Transition, config: RewardConfig) -> float:
    """The configured reward of one valid step."""
    return _FUNCTIONS[config.kind](transition, config)
