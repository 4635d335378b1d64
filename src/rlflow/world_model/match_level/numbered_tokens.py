"""V's reading of the tokens that one optimisation meets, each of which is read once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from rlflow.representation.match_token import MatchToken
from rlflow.representation.token_batch import TokenTable
from rlflow.world_model.match_level.token_encoder import TokenEncoder, TokenReading


class NumberedTokens:
    """Numbers tokens in the order in which they are met; `reading` holds what V reads of each, by its number."""

    def __init__(self, encoder: TokenEncoder, width: int) -> None:
        """width: of an embedding."""
        self.reading = TokenReading.empty(width)
        self._encoder = encoder
        self._number: dict[bytes, int] = {}

    def numbers(self, tokens: Sequence[MatchToken]) -> np.ndarray:
        """Return the numbers (K,) int64 of tokens; V reads those that are new."""
        new = [token for token in tokens if token.key not in self._number]
        if new:
            self._number |= {token.key: len(self._number) + count for count, token in enumerate(new)}
            self.reading = self.reading.followed_by(self._encoder.read(TokenTable(new)))
        return np.array([self._number[token.key] for token in tokens], dtype=np.int64)

    def state_dict(self) -> dict[str, Any]:
        """Return what was read: the last digit of a reading depends on what else was read with it."""
        keys = torch.tensor([list(key) for key in self._number], dtype=torch.uint8)
        return {"keys": keys, "reading": tuple(self.reading)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._number = {bytes(key): number for number, key in enumerate(state["keys"].tolist())}
        self.reading = TokenReading(*state["reading"])
