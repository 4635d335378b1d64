"""V as a reader of match tokens: by ONNX Runtime, as it ships, and by PyTorch, with which that is compared."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rlflow.agents.match_level.onnx_encoder import onnx_encoder
from rlflow.agents.match_level.token_reader import OnnxReader
from rlflow.representation.match_token import MatchToken
from rlflow.representation.token_batch import TokenTable
from rlflow.representation.vocabulary import Vocabulary
from rlflow.world_model.match_level.model import MatchLevelModel


def reader_of(model: MatchLevelModel) -> OnnxReader:
    return OnnxReader.of(onnx_encoder(model))


@dataclass(frozen=True, eq=False)
class TorchReader:
    model: MatchLevelModel

    @property
    def vocabulary(self) -> Vocabulary:
        return self.model.arguments.vocabulary

    def read(self, tokens: Sequence[MatchToken]) -> np.ndarray:
        reading = self.model.encoder.read(TokenTable(tokens))
        return np.concatenate([np.stack([reading.taken, reading.gain, reading.saving]), reading.embedding.T])
