"""The process that a controller over match tokens acts in: it observes a real graph by the same numbers as a dream.

    process = MatchLevelProcess(TokenProcess(graph, rewriter, cost_model), world_model)
    state = process.start()
    state = process.step(state, int(controller.act(process.observe(state))))

A choice is a class of matches, all of which are carried out, one after another. V reads every distinct token once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from rlflow.agents.token_collection import Expert
from rlflow.kept import fingerprint
from rlflow.processes.process import Process, ProcessState
from rlflow.processes.token_process import MatchLevelState, TokenProcess
from rlflow.representation.token_rollouts import FAR_AWAY, nearness_after
from rlflow.rules.matching.rewriter import Location
from rlflow.world_model.match_level.imagination import ClassStates
from rlflow.world_model.match_level.model import MatchLevelModel
from rlflow.world_model.match_level.numbered_tokens import NumberedTokens
from rlflow.world_model.match_level.observation import TokenLayout

_DECIMALS = 4  # of a logit


class ClassesSeen(NamedTuple):
    """The memory of a state of K classes of matches, and of how the episode came there.

    token (K,) int64: the numbers of their tokens in the order of V's reading; near (K,) int8: how near they are to the
    last rewrites. begun: the price where the episode began, in percent of the start's. way: the rewrites of the last
    choice, each with the graph that it led to.
    """

    token: np.ndarray
    near: np.ndarray
    begun: float
    way: Sequence[tuple[Location, ProcessState]] = ()


class MatchLevelProcess(Process[MatchLevelState, int]):
    """A process as V sees it; choices are places of the classes that are shown.

    It remembers what V has read. max_kinds: only so many classes are shown, the foremost ones, and an observation has
    that many places, the empty ones 0; None: all are shown, in the order of their first matches.
    """

    def __init__(self, process: TokenProcess, model: MatchLevelModel, max_kinds: int | None = None) -> None:
        self.process, self.evaluator = process, process.evaluator
        self.width, self.max_kinds = model.arguments.config.encoder_width, max_kinds
        self._tokens = NumberedTokens(model.encoder, self.width)

    def start(self) -> MatchLevelState:
        return self._start

    def choices(self, state: MatchLevelState) -> range:
        return range(len(self.shown(state)))

    def step(self, state: MatchLevelState, choice: int) -> MatchLevelState:
        after, step, way = self.process.step(state, self._kind(state, choice))
        before: ClassesSeen = state.memory
        token = self._tokens.numbers(after.classes.tokens)
        near = nearness_after(before.token, step, token)
        return after.remembering(ClassesSeen(token, near, before.begun, way))

    def way(
        self, before: MatchLevelState, choice: int, after: MatchLevelState
    ) -> Sequence[tuple[Location, ProcessState]]:
        seen: ClassesSeen = after.memory
        return seen.way

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

    def location(self, state: MatchLevelState, choice: int) -> Location:
        location, _ = state.classes.matches[state.first(self._kind(state, choice))]
        return location

    def savings(self, state: MatchLevelState, choices: Sequence[int]) -> np.ndarray:
        """(N,) float: what the first match saves, times the matches apart, in percent of the start's price."""
        classes = [self._kind(state, choice) for choice in choices]
        return state.saving_of(classes) * state.classes.apart[classes]

    def saved_percent(self, before: ProcessState, after: ProcessState) -> float:
        return 100.0 * (before.runtime_ms - after.runtime_ms) / self.process.start_ms

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
            return np.arange(len(seen.token))
        saving = np.sinh(self._tokens.reading.saving.numpy()[seen.token]) * state.classes.apart
        return np.lexsort((-saving, seen.near))[: self.max_kinds]

    def best_saving_percent(self) -> float:
        """Return what the best class of the start saves, as V reads it; 0 if none does."""
        saving = np.sinh(self._tokens.reading.saving.numpy()[self._start.memory.token]) * self._start.classes.apart
        return self.process.unit_percent * float(saving.max(initial=0.0))

    @cached_property
    def _start(self) -> MatchLevelState:
        state = self.process.start()
        token = self._tokens.numbers(state.classes.tokens)
        return state.remembering(ClassesSeen(token, np.full(len(token), FAR_AWAY, np.int8), state.percent))

    def _kind(self, state: MatchLevelState, choice: int) -> int:
        return int(self.shown(state)[choice])


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
