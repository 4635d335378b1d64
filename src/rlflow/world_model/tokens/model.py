"""The world model over match tokens: V and M, with the vocabulary that they read."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from rlflow.representation.vocabulary import Vocabulary
from rlflow.world_model.tokens.config import TokenModelConfig
from rlflow.world_model.tokens.token_encoder import TokenEncoder
from rlflow.world_model.tokens.token_memory import TokenMemory


@dataclass(frozen=True)
class TokenModelArguments:
    """All that is needed to build the network again; stored as JSON beside the weights."""

    vocabulary: Vocabulary
    library_hash: str
    config: TokenModelConfig


class TokenWorldModel(nn.Module):
    """V (`encoder`) and M (`memory`). Nothing in it counts rules, locations or matches."""

    def __init__(self, arguments: TokenModelArguments) -> None:
        super().__init__()
        self.arguments = arguments
        config, vocabulary = arguments.config, arguments.vocabulary
        self.encoder = TokenEncoder(
            len(vocabulary.operators), len(vocabulary.features), config.encoder_width, config.encoder_layers
        )
        self.memory = TokenMemory(config.encoder_width, config.metric_width, config.survival_width)
