"""The process that a controller over match tokens acts in: it observes a real graph by the same numbers as a dream.

    process = MatchLevelProcess(TokenProcess(graph, rewriter, cost_model), world_model)
    state = process.start()
    state = process.step(state, int(controller.act(process.observe(state))))

A choice is a class of matches, all of which are carried out, one after another. V reads every distinct token once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rlflow.agents.token_collection import Expert
from rlflow.kept import fingerprint
from rlflow.processes.class_process import ClassesSeen, ClassProcess
from rlflow.processes.token_process import MatchLevelState, TokenProcess
from rlflow.representation.match_token import MatchToken
from rlflow.world_model.match_level.imagination import ClassStates
from rlflow.world_model.match_level.model import MatchLevelModel
from rlflow.world_model.match_level.numbered_tokens import NumberedTokens
from rlflow.world_model.match_level.observation import TokenLayout

_DECIMALS = 4  # of a logit


class MatchLevelProcess(ClassProcess):
    """A process as V sees it; choices are places of the classes that are shown.

    It remembers what V has read. max_kinds: only so many classes are shown, the foremost ones, and an observation has
    that many places, the empty ones 0; None: all are shown, in the order of their first matches.
    """

    def __init__(self, process: TokenProcess, model: MatchLevelModel, max_kinds: int | None = None) -> None:
        super().__init__(process)
        self.width, self.max_kinds = model.arguments.config.encoder_width, max_kinds
        self._tokens = NumberedTokens(model.encoder, self.width)

    def numbers(self, tokens: Sequence[MatchToken]) -> np.ndarray:
        return self._tokens.numbers(tokens)

    def observe(self, state: MatchLevelState) -> np.ndarray:
        """(size,) float32 of `TokenLayout`: the classes that are shown, then empty places, then the cost."""
        shown, seen = self.shown(state), state.memory
        classes, layout = len(shown), TokenLayout(len(shown), self.width)
        looks = layout.looks(self._tokens.reading.rows(torch.from_numpy(seen.token[shown])))
        states = ClassStates(
            token=torch.arange(classes)[None],
            count=torch.from_numpy(state.classes.apart[shown])[None],
            distance=torch.zeros(1, classes, classes, dtype=torch.int8),  # no part of what is observed
            near=torch.from_numpy(seen.near[shown])[None],
            cost=_single(state.percent),
            begun=_single(seen.begun),
            unit=_single(self.process.unit_percent),
        )
        flat: np.ndarray = layout.flatten(states, looks)[0].numpy()
        if self.max_kinds is None:
            return flat
        empty = np.zeros(TokenLayout(self.max_kinds, self.width).size - len(flat), np.float32)
        return np.concatenate([flat[:-1], empty, flat[-1:]])

    def state_dict(self) -> dict[str, Any]:
        return self._tokens.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._tokens.load_state_dict(state)
        vars(self).pop("_start", None)  # its tokens have other numbers now

    def shown(self, state: MatchLevelState) -> np.ndarray:
        """(P,) int64: the classes that are shown; of a limited number, those nearest to the last rewrite come first.

        Of classes that are as near, those come first that save most, as V reads it.
        """
        seen: ClassesSeen = state.memory
        if self.max_kinds is None:
            return super().shown(state)
        saving = np.sinh(self._tokens.reading.saving.numpy()[seen.token]) * state.classes.apart
        return np.lexsort((-saving, seen.near))[: self.max_kinds]

    def best_saving_percent(self) -> float:
        """Return what the best class of the start saves, as V reads it; 0 if none does."""
        saving = np.sinh(self._tokens.reading.saving.numpy()[self._start.memory.token]) * self._start.classes.apart
        return self.process.unit_percent * float(saving.max(initial=0.0))


def expert_of(model: MatchLevelModel) -> Expert:
    """Return the expert that takes what V of a model says experts take; the process must have its vocabulary.

    Its logits are rounded, so that what else was read before has no say in its choice.
    """
    seen = NumberedTokens(model.encoder, model.arguments.config.encoder_width)

    def prefers(state: MatchLevelState) -> np.ndarray:
        numbers = seen.numbers(state.classes.tokens)
        return seen.reading.taken.numpy()[numbers].round(_DECIMALS)

    return Expert(fingerprint(content=(weight.numpy() for weight in model.state_dict().values())), prefers)


def _single(value: float) -> Tensor:
    return torch.tensor([value], dtype=torch.float32)
