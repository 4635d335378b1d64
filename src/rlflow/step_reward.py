"""The reward of a step, written once: for a step on a real graph, and for dreams that are stepped together.

    reward = StepReward("weighted", alpha=0.8, beta=0.2)
    reward(StepChange(saved=1.5, memory_saved=0.5, cost=98.5, improvement=1.5, ended=False))             1.3

R1 to R5 are those of the paper's Figure 5. All is in percent of the start. Rewards of a step are sums, products and
differences alone, so that what changed may be numbers, arrays or tensors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from rlflow.errors import InputError

Quantity = Literal["memory", "latency"]
"""A quantity that a reward may count beside the price: memory accesses, or the measured latency."""


@dataclass(frozen=True)
class StepChange:
    """The change by one step, as a reward sees it; all but `ended` in percent of the start.

    saved: of the price. cost: the price after it. improvement: what was saved since the episode began. ended: it is
    over, for whatever reason. memory_saved, latency_saved: NaN where nobody has looked.
    """

    saved: Any
    cost: Any
    improvement: Any
    ended: Any
    memory_saved: Any = math.nan
    latency_saved: Any = math.nan


@dataclass(frozen=True)
class StepReward:
    """The reward by name, one of `KINDS`; alpha and beta weigh price and memory accesses in `weighted`."""

    kind: str = "incremental"
    alpha: float = 0.8
    beta: float = 0.2

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"unknown reward {self.kind!r}: choose one of {', '.join(KINDS)}")

    def __call__(self, change: StepChange) -> Any:
        """The reward, in percent of the start."""
        return _REWARDS[self.kind](change, self)

    @property
    def quantity(self) -> Quantity | None:
        """The quantity that it counts beside the price, if any."""
        return _QUANTITIES.get(self.kind)

    @property
    def at_end(self) -> bool:
        """All of it is paid at the end, so that nothing can be earned after a horizon."""
        return self.kind == "terminal"


def incremental(change: StepChange, _: StepReward) -> Any:
    """RT(t-1) - RT(t) (equation 2, R5): an episode's rewards add up to its total improvement."""
    return change.saved


def runtime(change: StepChange, _: StepReward) -> Any:
    """-RT(t) (R2)."""
    return -change.cost


def weighted(change: StepChange, reward: StepReward) -> Any:
    """alpha dRT + beta dM (equation 3; R1, R3 and R4), where M are the memory accesses."""
    return reward.alpha * change.saved + reward.beta * change.memory_saved


def terminal(change: StepChange, _: StepReward) -> Any:
    """0 until the end, then the total improvement."""
    return change.ended * change.improvement


def end_to_end(change: StepChange, _: StepReward) -> Any:
    """The drop in latency as measured (X-RLflow)."""
    return change.latency_saved


_REWARDS: Mapping[str, Callable[[StepChange, StepReward], Any]] = {
    "incremental": incremental,
    "runtime": runtime,
    "weighted": weighted,
    "terminal": terminal,
    "end_to_end": end_to_end,
}
_QUANTITIES: Mapping[str, Quantity] = {"weighted": "memory", "end_to_end": "latency"}
KINDS = tuple(_REWARDS)

INCREMENTAL = StepReward()
