"""The birth sets that a world model was fitted on, stored with it, to dream without the rollouts at hand.

    memory = DeltaBank.of(tokens, reading, match_deltas(training, largest).sets)
    memory.save(folder)
    reading, sets, places = DeltaBank.load(folder).joined(tokens_of_another_graph, their_reading)

M draws births from these sets (`match_deltas.py`). Of the tokens in them it needs what V reads, and the key, by which a
token of another graph is known to be one of them: matches of it can turn as they have turned before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path

import torch
from torch import Tensor

from rlflow.representation.match_token import MatchToken
from rlflow.world_model.bundle import Bundle
from rlflow.world_model.match_level.match_deltas import NONE, MatchDeltas
from rlflow.world_model.match_level.token_encoder import TokenReading

_BUNDLE = Bundle("birth_memory", "birth memory", "run fit_world_model")
_NAMES_TOKENS = ("parent", "token", "before")


@dataclass(frozen=True, eq=False)
class DeltaBank:
    """Birth sets, which name T tokens by number; keys (T,) of these tokens, and what V reads of them."""

    keys: tuple[bytes, ...]
    reading: TokenReading
    sets: MatchDeltas

    @classmethod
    def of(cls, tokens: Sequence[MatchToken], reading: TokenReading, sets: MatchDeltas) -> DeltaBank:
        """Keep what belongs to the tokens that the sets name, in their order."""
        named = torch.cat([getattr(sets, name).flatten() for name in _NAMES_TOKENS]).unique()
        named = named[named != NONE]
        place = torch.full((len(tokens),), NONE)
        place[named] = torch.arange(len(named))
        keys = tuple(tokens[number].key for number in named.tolist())
        return cls(keys, reading.rows(named), _renumbered(sets, place))

    def joined(self, tokens: Sequence[MatchToken], reading: TokenReading) -> tuple[TokenReading, MatchDeltas, Tensor]:
        """Return what is read of the given tokens and of all others here, the sets, and the numbers of those given.

        A token that is known here keeps its number, and what was read of it.
        """
        number = {key: place for place, key in enumerate(self.keys)}
        new = [place for place, token in enumerate(tokens) if token.key not in number]
        number |= {tokens[place].key: len(self.keys) + count for count, place in enumerate(new)}
        together = self.reading.followed_by(reading.rows(torch.tensor(new, dtype=torch.int64)))
        return together, self.sets, torch.tensor([number[token.key] for token in tokens])

    def save(self, folder: Path) -> None:
        """Write `birth_memory.safetensors`; equal memories give equal bytes."""
        key = torch.tensor([list(key) for key in self.keys], dtype=torch.uint8)
        tensors = {"key": key, **self.reading._asdict(), **{f"set/{name}": t for name, t in vars(self.sets).items()}}
        _BUNDLE.save_tensors(tensors, folder)

    @classmethod
    def load(cls, folder: Path) -> DeltaBank:
        """Read what `save` wrote. Raises InputError where the folder holds no such memory."""
        with _BUNDLE.reading(folder):
            tensors = _BUNDLE.tensors(folder)
            return cls(
                keys=tuple(bytes(key) for key in tensors["key"].tolist()),
                reading=TokenReading(*(tensors[name] for name in TokenReading._fields)),
                sets=MatchDeltas(*(tensors[f"set/{entry.name}"] for entry in fields(MatchDeltas))),
            )


def _renumbered(sets: MatchDeltas, place: Tensor) -> MatchDeltas:
    """The same sets where token t has the number place[t]."""
    numbers = {name: getattr(sets, name) for name in _NAMES_TOKENS}
    return replace(sets, **{name: torch.where(n == NONE, NONE, place[n.clamp_min(0)]) for name, n in numbers.items()})
