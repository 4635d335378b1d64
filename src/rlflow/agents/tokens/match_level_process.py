"""The process that a controller over match tokens acts in: it observes a real graph by the same numbers as a dream.

    process = MatchLevelProcess(TokenProcess(graph, rewriter, cost_model), RealObserver(world_model))
    state = process.start()
    state = process.step(state, int(controller.act(process.observe(state))))

Of the kind of matches that is chosen, the first match is taken. V reads every distinct token once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlflow.environments.process import Process
from rlflow.environments.token_process import MatchLevelState, TokenProcess
from rlflow.representation.match_token import MatchToken
from rlflow.representation.token_rollouts import FAR_AWAY, TokenStep, nearness_after
from rlflow.rules.matching.rewriter import Location
from rlflow.world_model.tokens.imagination import KindStates
from rlflow.world_model.tokens.model import TokenWorldModel
from rlflow.world_model.tokens.observation import TokenLayout
from rlflow.world_model.tokens.token_batch import TokenTable


@dataclass(frozen=True, eq=False)
class KindsSeen:
    """K kinds of matches: token (K,) int64, the observer's numbers of them; count (K,) int64; near (K,) int8.

    percent: the price where they were seen, begun: where the episode began, both in percent of the start's price.
    """

    token: np.ndarray
    count: np.ndarray
    near: np.ndarray
    percent: float
    begun: float

    def rows(self, index: np.ndarray) -> KindsSeen:
        """The same with the kinds at index alone."""
        return replace(self, token=self.token[index], count=self.count[index], near=self.near[index])


class RealObserver:
    """Sees the states of any number of episodes, and remembers what V has read."""

    def __init__(self, model: TokenWorldModel) -> None:
        self._model = model
        self._number: dict[bytes, int] = {}
        self.width = model.arguments.config.encoder_width
        self._embedding, self._saving = torch.zeros(0, self.width), torch.zeros(0)

    def first(self, state: MatchLevelState) -> KindsSeen:
        """See the state in which an episode begins."""
        token = self._numbers(state.kinds.tokens)
        near = np.full(len(token), FAR_AWAY, np.int8)
        return KindsSeen(token, state.kinds.counts, near, state.percent, state.percent)

    def after(self, before: KindsSeen, step: TokenStep, state: MatchLevelState) -> KindsSeen:
        """See the state after a step."""
        token = self._numbers(state.kinds.tokens)
        near = nearness_after(before.token, step, token)
        return KindsSeen(token, state.kinds.counts, near, state.percent, before.begun)

    def observation(self, seen: KindsSeen, unit_percent: float) -> np.ndarray:
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
            cost=_single(seen.percent),
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

    def foremost(self, seen: KindsSeen, number: int) -> np.ndarray:
        """The places of so many kinds, all if there are no more: those nearest to the last rewrite come first.

        Of kinds that are as near, those come first that save most, as V reads it.
        """
        return np.lexsort((-self._saving.numpy()[seen.token], seen.near))[:number]

    def best_saving_percent(self, seen: KindsSeen, unit_percent: float) -> float:
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


class MatchLevelProcess(Process[MatchLevelState, int]):
    """The process as an observer sees it; choices are places of the kinds that are shown.

    max_kinds: only so many are shown, the foremost ones, and an observation has that many places, the empty ones 0;
    None: all are shown, in the order of their first matches.
    """

    def __init__(self, process: TokenProcess, observer: RealObserver, max_kinds: int | None = None) -> None:
        self.process, self.evaluator = process, process.evaluator
        self.observer, self.max_kinds = observer, max_kinds

    def start(self) -> MatchLevelState:
        return self._start.remembering(self.observer.first(self._start))

    def choices(self, state: MatchLevelState) -> range:
        return range(len(self.shown(state)))

    def step(self, state: MatchLevelState, choice: int) -> MatchLevelState:
        after, step = self.process.step(state, self._kind(state, choice))
        return after.remembering(self.observer.after(state.memory, step, after))

    def observe(self, state: MatchLevelState) -> np.ndarray:
        """(size,) float32 of `TokenLayout`: the kinds that are shown, then empty places, then the cost."""
        flat = self.observer.observation(state.memory.rows(self.shown(state)), self.process.unit_percent)
        if self.max_kinds is None:
            return flat
        empty = np.zeros(TokenLayout(self.max_kinds, self.observer.width).size - len(flat), np.float32)
        return np.concatenate([flat[:-1], empty, flat[-1:]])

    def location(self, state: MatchLevelState, choice: int) -> Location:
        location, _ = state.kinds.matches[state.first(self._kind(state, choice))]
        return location

    def savings(self, state: MatchLevelState, choices: Sequence[int]) -> np.ndarray:
        """(N,) float32: what the first matches of some kinds save, in percent of the start's price."""
        return state.saving_of([self._kind(state, choice) for choice in choices])

    def saved_percent(self, before: MatchLevelState, after: MatchLevelState) -> float:
        return before.percent - after.percent

    def state_dict(self) -> dict[str, Any]:
        return self.observer.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.observer.load_state_dict(state)

    def shown(self, state: MatchLevelState) -> np.ndarray:
        """(P,) int64: the kinds that are shown."""
        seen: KindsSeen = state.memory
        return np.arange(len(seen.token)) if self.max_kinds is None else self.observer.foremost(seen, self.max_kinds)

    def _kind(self, state: MatchLevelState, choice: int) -> int:
        return int(self.shown(state)[choice])

    @cached_property
    def _start(self) -> MatchLevelState:
        return self.process.start()


def _single(value: float) -> Tensor:
    return torch.tensor([value], dtype=torch.float32)
