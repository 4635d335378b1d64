"""V's reading of match tokens by ONNX Runtime, which needs no PyTorch.

    reader = OnnxReader.of(load_model(folder / "encoder.onnx"))
    taken, gain, saving, *embedding = reader.read(tokens)

The invariant: what is read of a token does not depend on the others, but for the last digits.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from rlflow.onnx_io.network import Model, texts_of
from rlflow.representation.match_token import MatchToken
from rlflow.representation.token_batch import TokenTable
from rlflow.representation.vocabulary import Vocabulary
from rlflow.runtime.session import Session, open_session, run

SCORES = 3  # columns of a reading before the embedding: taken, gain and saving
_AT_ONCE = 512  # tokens


class TokenReader(Protocol):
    """Reads tokens that are written in its vocabulary."""

    @property
    def vocabulary(self) -> Vocabulary: ...

    def read(self, tokens: Sequence[MatchToken]) -> np.ndarray:
        """Read T tokens, at least one: (3 + W, T), rows `taken`, `gain`, `saving`, `embedding` of a `TokenReading`."""


@dataclass(frozen=True, eq=False)
class OnnxReader:
    """A reader by the ONNX model of an encoder, on one thread."""

    vocabulary: Vocabulary
    session: Session

    @classmethod
    def of(cls, encoder: Model) -> OnnxReader:
        """Open the model of `onnx_encoder`."""
        vocabulary = Vocabulary.from_json(json.loads(texts_of(encoder)["vocabulary"]))
        return cls(vocabulary, open_session(encoder, "deployed"))

    def read(self, tokens: Sequence[MatchToken]) -> np.ndarray:
        """Read tokens."""
        table, places = TokenTable(tokens), np.arange(len(tokens))
        return np.concatenate([self._read(table, places[i : i + _AT_ONCE]) for i in places[::_AT_ONCE]], axis=1)

    def _read(self, table: TokenTable, places: np.ndarray) -> np.ndarray:
        inputs = {name: np.asarray(value) for name, value in vars(table.batch(places)).items()}
        return run(self.session, inputs)["reading"].T
