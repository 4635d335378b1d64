"""Settings of an agent that orders passes; their values live in conf/."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.errors import InputError
from rlflow.settings import read_config
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig, GraphLevelModelConfig

CostFeatures = Literal["none", "value", "both"]


WORLD_MODEL = "world_model"
"""The algorithm of an agent that is trained in a dream."""


@dataclass(frozen=True)
class PassAgentConfig:
    """One algorithm and how it is trained.

    algorithm: a name of `rlflow.passes.agents.algorithms`. settings: the algorithm's own, as Stable-Baselines3 spells
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


@dataclass(frozen=True)
class DreamtConfig:
    """The paper's world model: so many random episodes, the fit of V and M to them, the dream, and C's training."""

    episodes: int = 96
    world_model: GraphLevelModelConfig = field(default_factory=GraphLevelModelConfig)
    dream: GraphLevelDreamConfig = field(default_factory=GraphLevelDreamConfig)
    controller: ControllerConfig = field(default_factory=ControllerConfig)

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise InputError("a world model is fitted on at least one episode")


def config_of(section: Mapping[str, Any]) -> PassAgentConfig | DreamtConfig:
    """The settings of an option of conf/pass_agent. `InputError` for one that there is not."""
    if section.get("algorithm") != WORLD_MODEL:
        return read_config(PassAgentConfig, section)
    return read_config(DreamtConfig, {name: value for name, value in section.items() if name != "algorithm"})
