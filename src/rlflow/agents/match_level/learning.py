"""The way to a training in a dream over match tokens: rollouts, and a world model that is fitted on them.

dream = dream_of_graph(process, "bert", config, seed=0, library_hash=library.hash)
training = train_in_dream(dream, config.ppo, seed=0)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlflow.agents.match_level.chain import FittedWorld
from rlflow.agents.match_level.dream import MatchLevelDream
from rlflow.agents.match_level.match_level_process import expert_of
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig
from rlflow.agents.token_collection import TokenCollectionConfig, collect_tokens
from rlflow.processes.token_process import TokenProcess
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.settings import read_config
from rlflow.world_model.epochs import OnEpoch
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig, MatchLevelModelConfig
from rlflow.world_model.match_level.model import MatchLevelModel


@dataclass(frozen=True)
class LearningConfig:
    """The settings of rollouts, of the world model, of its dream, and of the training of a controller in it."""

    rollouts: TokenCollectionConfig
    world_model: MatchLevelModelConfig
    dream: MatchLevelDreamConfig
    ppo: MatchLevelControllerConfig

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> LearningConfig:
        """Read the sections `rollouts`, `world_model` and `controller` of an experiment's settings."""
        parts = {name: settings[name] for name in ("rollouts", "world_model")}
        return read_config(cls, parts | {name: settings["controller"][name] for name in ("dream", "ppo")})


def dream_of_graph(
    process: TokenProcess,
    graph: str,
    config: LearningConfig,
    *,
    seed: int,
    library_hash: str,
    begin: MatchLevelModel | None = None,
    on_epoch: OnEpoch | None = None,
) -> MatchLevelDream:
    """Collect rollouts of a graph, and return the dream of a world model that is fitted on them.

    begin: the model that V goes on from, whose vocabulary the process must have; its expert leads rollouts, too.
    """
    expert = None if begin is None else expert_of(begin)
    rollouts = collect_tokens(
        process, graph, config.rollouts, seed=seed, library_hash=library_hash, expert=expert
    ).rollouts
    return dream_of_rollouts(rollouts, config, seed=seed, begin=begin, on_epoch=on_epoch)


def dream_of_rollouts(
    rollouts: TokenRollouts,
    config: LearningConfig,
    *,
    seed: int,
    begin: MatchLevelModel | None = None,
    on_epoch: OnEpoch | None = None,
) -> MatchLevelDream:
    """Fit a world model on rollouts, and return the dream of it that begins in their states."""
    world = FittedWorld.fit(rollouts, config.world_model, seed=seed, begin=begin, on_epoch=on_epoch)
    return world.dream(rollouts, config.dream)
