"""The states that a policy over candidates has seen, so that an observation is no more than the name of one.

    memory = CandidateMemory(writer, capacity=4096)
    name = memory.keep(state, scale)                                   an int64
    batch, place = memory.batch(torch.tensor([[name], [name]]), max_candidates=64)

Episodes side by side begin at one graph and meet others again and again. A rollout buffer holds names, eight bytes a
step; each state is written as arrays once, and in a batch it is encoded once however often it is named.

The invariant: a name depends on the graph and on the scale of prices alone, so that a killed training names the same
states again, and states of several processes may be in one memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import blake2b
from itertools import accumulate

import numpy as np
import torch
from torch import Tensor

from rlflow.environments.candidate_process import CandidateProcess, CandidateState
from rlflow.errors import InputError
from rlflow.representation.candidate_arrays import CandidateArrays, CandidateWriter

_LEAST_SAVING = 1e-3  # percent: no unit to count in
_LEAST_SHARE = 1e-6  # of the unit: rounding


@dataclass(frozen=True)
class PriceScale:
    """The scale in which prices of a process are seen: a saving of `unit_ms` and a price of `start_ms` count as 1.

    Where None stands instead, prices are not seen. unit_ms: the best saving of a candidate of the original, or a
    percent of the original's price if none saves.
    """

    unit_ms: float
    start_ms: float

    @classmethod
    def of(cls, process: CandidateProcess) -> PriceScale:
        """Return the scale of a process."""
        best_ms = float(process.start().saving_ms.max(initial=0.0))
        one_percent_ms = process.start_ms / 100.0
        return cls(best_ms if best_ms > _LEAST_SAVING * one_percent_ms else one_percent_ms, process.start_ms)


@dataclass(frozen=True, eq=False)
class View:
    """Observation of a state; prices are 0 where the agent must not see them.

    saving: (K,) float32, asinh of what candidates save in the scale's unit. gain: (K,) float32, the same as a share of
    the best, where anything is saved. cost: the price as a share of the start's.
    """

    arrays: CandidateArrays
    saving: np.ndarray
    gain: np.ndarray
    cost: float

    @classmethod
    def of(cls, arrays: CandidateArrays, state: CandidateState, scale: PriceScale | None) -> View:
        """See a state that was written as arrays."""
        if scale is None:
            nothing = np.zeros(len(state.candidates), np.float32)
            return cls(arrays, nothing, nothing, 0.0)
        units = state.saving_ms / scale.unit_ms
        best = units.max(initial=0.0)
        gain = units.clip(min=0.0) / best if best > _LEAST_SHARE else np.zeros(len(units))
        saving = np.arcsinh(units).astype(np.float32)
        return cls(arrays, saving, gain.astype(np.float32), state.runtime_ms / scale.start_ms)


@dataclass(frozen=True, eq=False)
class CandidateBatch:
    """S states with C candidates in all, as one disjoint graph of M nodes and E messages.

    - `op` (M,) int64, `features` (M, F); `messages` (E, 2), and the `kind` (E,) of each; `kinds` (T, D + 1) of edges,
      where the last column tells the direction.
    - `state` (N,) int64 of the `current` (N,) nodes, the nodes of current graphs.
    - `plus` (P, 2) and `minus` (Q, 2): candidates, and nodes that they have beside or instead of these.
    - `row` (C,): the state of each candidate; `present` (S, K) bool. `saving` (C,), `cost` (S, 1).
    - `gain` (C,): the saving as a share of the state's best, 0 where nothing is saved.
    """

    op: Tensor
    features: Tensor
    kinds: Tensor
    kind: Tensor
    messages: Tensor
    current: Tensor
    state: Tensor
    plus: Tensor
    minus: Tensor
    row: Tensor
    present: Tensor
    saving: Tensor
    gain: Tensor
    cost: Tensor


def name_of(state: CandidateState, scale: PriceScale | None) -> int:
    """Return the name of a state, a digest of its graph's structural hash and of the scale of prices."""
    digest = blake2b(repr((state.hash, scale)).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little", signed=True)


class CandidateMemory:
    """Keeps the arrays of the states that were seen last, `capacity` of them."""

    def __init__(self, writer: CandidateWriter, capacity: int) -> None:
        self.writer, self.capacity = writer, capacity
        self._views: OrderedDict[int, View] = OrderedDict()

    def __len__(self) -> int:
        return len(self._views)

    @property
    def nbytes(self) -> int:
        """The memory that the arrays of all states take."""
        return sum(view.arrays.nbytes for view in self._views.values())

    def keep(self, state: CandidateState, scale: PriceScale | None) -> int:
        """Write a state down unless it is known; return its name."""
        name = name_of(state, scale)
        if name not in self._views:
            self._views[name] = View.of(self.writer.arrays(state.graph, state.graphs), state, scale)
            if len(self._views) > self.capacity:
                self._views.popitem(last=False)
        self._views.move_to_end(name)
        return name

    def observer(self, scale: PriceScale | None) -> Callable[[CandidateState], np.ndarray]:
        """Return a function that observes a state, which is kept, by its name, (1,) int64."""
        return lambda state: np.array([self.keep(state, scale)], np.int64)

    def batch(self, names: Tensor, max_candidates: int) -> tuple[CandidateBatch, Tensor]:
        """Put the states of names (B, 1) together, each distinct one once; return them and the place of each (B,).

        `InputError` for a state that is no longer kept.
        """
        distinct, place = names[:, 0].unique(return_inverse=True)
        views = [self._view(name) for name in distinct.tolist()]
        return self._together(views, max_candidates), place

    def _view(self, name: int) -> View:
        if name not in self._views:
            raise InputError(
                f"a state is no longer among the {self.capacity} that are remembered: raise states_in_memory above the "
                "steps of an update"
            )
        return self._views[name]

    def _together(self, views: list[View], max_candidates: int) -> CandidateBatch:
        parts = [view.arrays for view in views]
        nodes = _offsets(len(part.look) for part in parts)
        candidates = _offsets(part.candidates for part in parts)
        rows = self.writer.node_rows()[np.concatenate([part.look for part in parts])]
        edges, direction = self.writer.edge_rows(), np.zeros((len(self.writer.edge_rows()), 1), np.float32)
        kinds = np.concatenate([np.append(edges, direction, 1), np.append(edges, direction + 1, 1)])
        kind = np.concatenate([part.edge + len(edges) * part.backward for part in parts])
        owner = np.concatenate([part.owner for part in parts])
        state_of_node = np.repeat(np.arange(len(parts)), [len(part.look) for part in parts])
        copies, current = np.flatnonzero(owner), np.flatnonzero(owner == 0)
        copied_by = owner[copies] - 1 + np.array(candidates)[state_of_node[copies]]
        counts = np.array([part.candidates for part in parts])
        moved = [
            part.replaced + np.array((first - 1, begin))
            for part, first, begin in zip(parts, candidates, nodes, strict=True)
        ]
        return CandidateBatch(
            op=torch.from_numpy(rows[:, 0].astype(np.int64)),
            features=torch.from_numpy(rows[:, 1:]),
            kinds=torch.from_numpy(kinds),
            kind=_long(kind),
            messages=_long(np.concatenate([part.messages + begin for part, begin in zip(parts, nodes, strict=True)])),
            current=_long(current),
            state=_long(state_of_node[current]),
            plus=_long(np.stack([copied_by, copies], axis=1)),
            minus=_long(np.concatenate(moved)),
            row=_long(np.repeat(np.arange(len(parts)), counts)),
            present=torch.from_numpy(np.arange(max_candidates) < counts[:, None]),
            saving=torch.from_numpy(np.concatenate([view.saving for view in views])),
            gain=torch.from_numpy(np.concatenate([view.gain for view in views])),
            cost=torch.tensor([[view.cost] for view in views], dtype=torch.float32),
        )


def _offsets(sizes: Iterable[int]) -> list[int]:
    return list(accumulate(sizes, initial=0))[:-1]


def _long(array: np.ndarray) -> Tensor:
    return torch.from_numpy(array.astype(np.int64))
