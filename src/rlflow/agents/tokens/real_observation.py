"""The view that a controller over match tokens has of a real graph: the same numbers as in a dream.

    observer = RealObserver(world_model)
    seen = observer.first(process.start())
    controller.act(observer.observation(seen, process.unit_percent))
    seen = observer.after(seen, step, situation)            of process.step(...)

V reads every distinct token once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from rlflow.environments.token_process import Situation
from rlflow.representation.match_token import MatchToken
from rlflow.representation.token_rollouts import FAR_AWAY, TokenStep, nearness_after
from rlflow.world_model.tokens.imagination import KindStates
from rlflow.world_model.tokens.model import TokenWorldModel
from rlflow.world_model.tokens.observation import TokenLayout
from rlflow.world_model.tokens.token_batch import TokenTable


@dataclass(frozen=True, eq=False)
class Seen:
    """K kinds of matches: token (K,) int64, the observer's numbers of them; count (K,) int64; near (K,) int8.

    cost, and begun, where the episode began: in percent of the start's price.
    """

    token: np.ndarray
    count: np.ndarray
    near: np.ndarray
    cost: float
    begun: float

    def rows(self, index: np.ndarray) -> Seen:
        """The same with the kinds at index alone."""
        return replace(self, token=self.token[index], count=self.count[index], near=self.near[index])


class RealObserver:
    """Sees the situations of any number of episodes, and remembers what V has read."""

    def __init__(self, model: TokenWorldModel) -> None:
        self._model = model
        self._number: dict[bytes, int] = {}
        self.width = model.arguments.config.encoder_width
        self._embedding, self._saving = torch.zeros(0, self.width), torch.zeros(0)

    def first(self, situation: Situation) -> Seen:
        """See the situation in which an episode begins."""
        token, kinds = self._numbers(situation.kinds.tokens), situation.kinds
        return Seen(token, kinds.counts, np.full(len(token), FAR_AWAY, np.int8), situation.cost, situation.cost)

    def after(self, before: Seen, step: TokenStep, situation: Situation) -> Seen:
        """See the situation after a step."""
        token = self._numbers(situation.kinds.tokens)
        near = nearness_after(before.token, step, token)
        return Seen(token, situation.kinds.counts, near, situation.cost, before.begun)

    def observation(self, seen: Seen, unit_percent: float) -> np.ndarray:
        """(size,) float32 of `TokenLayout` for the K kinds; unit_percent: the unit of prices in percent."""
        kinds = len(seen.token)
        layout = TokenLayout(kinds, self._embedding.shape[1])
        of_kinds = torch.from_numpy(seen.token)
        looks = layout.looks(self._embedding[of_kinds], self._saving[of_kinds])
        states = KindStates(
            token=torch.arange(kinds)[None],
            count=torch.from_numpy(seen.count)[None],
            distance=torch.zeros(1, kinds, kinds, dtype=torch.int8),  # no part of what is observed
            near=torch.from_numpy(seen.near)[None],
            cost=_single(seen.cost),
            begun=_single(seen.begun),
            unit=_single(unit_percent),
        )
        observation: np.ndarray = layout.flatten(states, looks)[0].numpy()
        return observation

    def state_dict(self) -> dict[str, Tensor]:
        """Return what V has read: the last digit of a reading depends on what else was read with it."""
        keys = torch.tensor([list(key) for key in self._number], dtype=torch.uint8)
        return {"keys": keys, "embedding": self._embedding, "saving": self._saving}

    def load_state_dict(self, state: dict[str, Tensor]) -> None:
        """Go on from what `state_dict` returned."""
        self._number = {bytes(key): number for number, key in enumerate(state["keys"].tolist())}
        self._embedding, self._saving = state["embedding"], state["saving"]

    def foremost(self, seen: Seen, number: int) -> np.ndarray:
        """The places of so many kinds, all if there are no more: those nearest to the last rewrite come first.

        Of kinds that are as near, those come first that save most, as V reads it.
        """
        return np.lexsort((-self._saving.numpy()[seen.token], seen.near))[:number]

    def best_saving_percent(self, seen: Seen, unit_percent: float) -> float:
        """Return what the best match saves, as V reads it; 0 if none does."""
        return unit_percent * float(np.sinh(self._saving.numpy()[seen.token]).max(initial=0.0))

    def _numbers(self, tokens: Sequence[MatchToken]) -> np.ndarray:
        new = [token for token in tokens if token.key not in self._number]
        if new:
            self._number |= {token.key: len(self._number) + count for count, token in enumerate(new)}
            reading = self._model.encoder.read(TokenTable(new))
            self._embedding = torch.cat([self._embedding, reading.embedding])
            self._saving = torch.cat([self._saving, reading.saving])
        return np.array([self._number[token.key] for token in tokens], dtype=np.int64)


def _single(value: float) -> Tensor:
    return torch.tensor([value], dtype=torch.float32)
