"""The learning chain over match tokens: rollouts, a world model that was fitted on them, and a controller of its dream.

world = FittedWorld.fit(rollouts, MatchLevelModelConfig(), seed=0)
training = train_in_dream(world.dream(rollouts, MatchLevelDreamConfig()), MatchLevelControllerConfig(), seed=0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rlflow.agents.match_level.dream import MatchLevelDream
from rlflow.representation.token_rollouts import TokenEpisode, TokenRollouts
from rlflow.step_reward import INCREMENTAL, StepReward
from rlflow.world_model.epochs import OnEpoch
from rlflow.world_model.held_out import split_episodes
from rlflow.world_model.match_level.delta_bank import DeltaBank
from rlflow.world_model.match_level.match_deltas import match_deltas
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig, MatchLevelModelConfig
from rlflow.world_model.match_level.model import MatchLevelModel
from rlflow.world_model.match_level.trainer import fit_token_model


@dataclass(frozen=True)
class FittedWorld:
    """A world model, and the birth sets of the episodes that it was fitted on, from which it dreams."""

    model: MatchLevelModel
    births: DeltaBank

    @classmethod
    def fit(
        cls,
        rollouts: TokenRollouts,
        config: MatchLevelModelConfig,
        *,
        seed: int,
        begin: MatchLevelModel | None = None,
        checkpoint: Path | None = None,
        on_epoch: OnEpoch | None = None,
    ) -> FittedWorld:
        """Fit a world model on the episodes that are not held out, as `fit_token_model` does."""
        model = fit_token_model(rollouts, config, seed=seed, begin=begin, checkpoint=checkpoint, on_epoch=on_epoch)
        training, _ = split_episodes(rollouts.episodes, config.held_out_fraction, seed)
        return cls(model, births_in(training, rollouts, model))

    def save(self, folder: Path) -> None:
        """Write the model, and the birth sets beside it."""
        self.model.save(folder)
        self.births.save(folder)

    @classmethod
    def load(cls, folder: Path) -> FittedWorld:
        """Read what `save` wrote. `InputError` if the folder holds no such files."""
        return cls(MatchLevelModel.load(folder), DeltaBank.load(folder))

    def dream(
        self, rollouts: TokenRollouts, config: MatchLevelDreamConfig, reward: StepReward = INCREMENTAL
    ) -> MatchLevelDream:
        """Return the dream that begins in the states of rollouts, and pays this reward."""
        return MatchLevelDream.of(self.model, self.births, rollouts, config, reward)


def births_in(episodes: Sequence[TokenEpisode], rollouts: TokenRollouts, model: MatchLevelModel) -> DeltaBank:
    """Return the birth sets that some episodes of rollouts show, with what V reads of their tokens."""
    sets = match_deltas(episodes, model.arguments.config.largest_birth_set).sets
    return DeltaBank.of(rollouts.tokens, model.read(rollouts), sets)
