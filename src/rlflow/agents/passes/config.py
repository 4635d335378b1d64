"""Settings of an agent that orders passes; their values live in conf/."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rlflow.errors import InputError

CostFeatures = Literal["none", "value", "both"]


@dataclass(frozen=True)
class PassAgentConfig:
    """One algorithm and how it is trained.

    algorithm: a name of `rlflow.agents.passes.algorithms`. settings: the algorithm's own, as Stable-Baselines3 spells
    them. cost_features: who sees the cost analysis beside the operation counts: nobody, the value function alone (the
    paper's second enhancement), or the policy as well. potential: of the shaping (the paper's first), or none.
    """

    algorithm: str = "maskable_ppo"
    total_steps: int = 16384
    gamma: float = 0.99
    learning_rate: float = 3e-4
    width: int = 64
    num_envs: int = 8
    cost_features: CostFeatures = "none"
    potential: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.cost_features not in ("none", "value", "both"):
            raise InputError(f"cost_features must be none, value or both, not {self.cost_features!r}")
        if self.total_steps < 1 or self.num_envs < 1:
            raise InputError("an agent is trained in at least one environment for at least one step")
