"""The settings of a reward; their values live in conf/reward."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rlflow.errors import InputError
from rlflow.runtime.session import SETTINGS, Setting
from rlflow.runtime.timing.savings import LEAST_ROUNDS
from rlflow.step_reward import StepReward


@dataclass(frozen=True)
class RewardConfig:
    """The reward by name, one of `step_reward.KINDS`.

    alpha and beta weigh runtime and memory accesses in `weighted`; beta is 1 - alpha where it is None. The others
    belong to `end_to_end`: a measurement at each `every`-th step and at the end, at the end alone for None; the reward
    `between`; and how graphs are timed, by the `setting` of ONNX Runtime, `rounds`, the least `runs_per_round`, and
    `threads`.
    """

    kind: str = "incremental"
    alpha: float = 0.8
    beta: float | None = None
    invalid: float = -100.0
    every: int | None = 1
    between: float = 0.0
    setting: Setting = "deployed"
    rounds: int = 10
    runs_per_round: int = 3
    threads: int = 1

    def __post_init__(self) -> None:
        StepReward(self.kind)  # which refuses a name that it does not know
        if self.every is not None and self.every < 1:
            raise InputError(f"reward.every is {self.every}: measure every 1 or more steps, or null, at the end alone")
        if not math.isfinite(self.between):
            raise InputError(f"reward.between is {self.between}: choose a finite reward, such as 0")
        if self.setting not in SETTINGS:
            raise InputError(f"unknown reward.setting {self.setting!r}: choose one of {', '.join(SETTINGS)}")
        if self.rounds < LEAST_ROUNDS:
            raise InputError(f"reward.rounds is {self.rounds}: noise is not told from a gain in under {LEAST_ROUNDS}")
        for name in ("runs_per_round", "threads"):
            if getattr(self, name) < 1:
                raise InputError(f"reward.{name} is {getattr(self, name)}: choose 1 or more")

    @property
    def of_step(self) -> StepReward:
        """The reward as a function of what a step changes."""
        return StepReward(self.kind, self.alpha, 1.0 - self.alpha if self.beta is None else self.beta)

    @property
    def is_measured(self) -> bool:
        """True if it takes a clock."""
        return self.of_step.quantity == "latency"
