"""The world model over match tokens: V and M, with the vocabulary that they read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch import nn

from rlflow.errors import InputError
from rlflow.representation.token_batch import TokenTable
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.representation.vocabulary import Vocabulary
from rlflow.world_model.bundle import WORLD_MODEL, Arguments
from rlflow.world_model.match_level.match_level_config import MatchLevelModelConfig
from rlflow.world_model.match_level.token_encoder import TokenEncoder, TokenReading
from rlflow.world_model.match_level.token_memory import TokenMemory


@dataclass(frozen=True)
class MatchLevelModelArguments(Arguments):
    """All that is needed to build the network again; stored as JSON beside the weights."""

    vocabulary: Vocabulary
    library_hash: str
    config: MatchLevelModelConfig


class MatchLevelModel(nn.Module):
    """V (`encoder`) and M (`memory`). Nothing in it counts rules, locations or matches."""

    def __init__(self, arguments: MatchLevelModelArguments) -> None:
        super().__init__()
        self.arguments = arguments
        config, vocabulary = arguments.config, arguments.vocabulary
        self.encoder = TokenEncoder(
            len(vocabulary.operators), len(vocabulary.features), config.encoder_width, config.encoder_layers
        )
        self.memory = TokenMemory(config.encoder_width, config.metric_width, config.survival_width)

    def read(self, rollouts: TokenRollouts) -> TokenReading:
        """Read the tokens of rollouts. `InputError` if these are in another vocabulary than the model's."""
        self.check_vocabulary(rollouts)
        return self.encoder.read(TokenTable(rollouts.tokens))

    def check_vocabulary(self, rollouts: TokenRollouts) -> None:
        """Raise `InputError` if rollouts are in another vocabulary than the model's."""
        known, given = self.arguments.vocabulary, rollouts.vocabulary
        if known != given:
            difference = known.describe_difference(given)
            raise InputError(
                f"the rollouts are in another vocabulary than the world model's, {difference}: fit it on them with "
                "fit_world_model"
            )

    def save(self, folder: Path) -> None:
        """Write `world_model.safetensors` and `world_model.json`; equal models give equal bytes."""
        WORLD_MODEL.save(self, self.arguments, folder)

    @classmethod
    def load(cls, folder: Path) -> MatchLevelModel:
        """Read what `save` wrote, ready for use. Raises InputError where the folder holds no such world model."""
        model, _ = WORLD_MODEL.load(folder, MatchLevelModelArguments, MatchLevelModel)
        return model
