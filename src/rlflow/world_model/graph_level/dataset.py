"""Episodes as padded tensors with a validity mask.

An episode of T steps has T + 1 states. Three episodes of 4, 2 and 3 steps become tensors of T = 4 steps and 5 states;
`valid` is true for 4, 2 and 3 of the steps. The invariant: no loss and no statistic may read a step that is not valid.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from rlflow.representation.rollouts import Episode
from rlflow.world_model.graph_level.mdn_rnn import Change, State

Record = TypeVar("Record", State, Change)


@dataclass(frozen=True)
class Sequences:
    """E episodes padded to T steps.

    graph_index, cost (E, T+1), counts (E, T+1, R); action (E, T, 2), reward, terminated, valid (E, T).
    Padding repeats the last state under rule 0 and is not valid.
    """

    graph_index: Tensor
    counts: Tensor
    cost: Tensor
    action: Tensor
    reward: Tensor
    terminated: Tensor
    valid: Tensor

    @property
    def num_steps(self) -> int:
        """T."""
        return self.valid.shape[1]

    def rows(self, index: Tensor) -> "Sequences":
        """The episodes at index (B,)."""
        return Sequences(*(getattr(self, entry.name)[index] for entry in fields(self)))

    def chunks(self, length: int) -> Iterator["Sequences"]:
        """Consecutive stretches of at most `length` steps; the states at a seam belong to both sides."""
        for start in range(0, self.num_steps, length):
            stop = min(start + length, self.num_steps)
            states = {name: getattr(self, name)[:, start : stop + 1] for name in ("graph_index", "counts", "cost")}
            steps = {name: getattr(self, name)[:, start:stop] for name in ("action", "reward", "terminated", "valid")}
            yield Sequences(**states, **steps)

    def states(self, latents: Tensor) -> State:
        """All T + 1 states, with the latents (G, Z) of the distinct graphs."""
        return State(latents[self.graph_index], self.counts, self.cost)

    def transitions(self, latents: Tensor) -> tuple[State, Change]:
        """The T states that were left, and what the step changed."""
        z = latents[self.graph_index]
        state = State(z[:, :-1], self.counts[:, :-1], self.cost[:, :-1])
        change = Change(
            latent=z[:, 1:] - z[:, :-1],
            reward=self.reward,
            terminated=self.terminated,
            counts=self.counts[:, 1:] - self.counts[:, :-1],
            cost=self.cost[:, 1:] - self.cost[:, :-1],
            rule=self.action[..., 0],
        )
        return state, change

    def valid_transitions(self, latents: Tensor) -> tuple[State, Change]:
        """The M steps that are not padding, episode by episode: (M, ...)."""
        state, change = self.transitions(latents)
        return _select(state, self.valid), _select(change, self.valid)


def _select(record: Record, valid: Tensor) -> Record:
    return type(record)(*(getattr(record, entry.name)[valid] for entry in fields(record)))


def pad_episodes(episodes: Sequence[Episode], length: int | None = None) -> Sequences:
    """Episodes padded to the longest of them, or to `length` steps if that is more."""
    steps = max([episode.num_steps for episode in episodes] + [length or 0])

    def padded(name: str, dtype: type[np.generic], size: int, mode: str) -> Tensor:
        rows = [_pad(getattr(episode, name).astype(dtype), size, mode) for episode in episodes]
        return torch.from_numpy(np.stack(rows))

    def of_states(name: str, dtype: type[np.generic]) -> Tensor:
        return padded(name, dtype, steps + 1, mode="edge")

    def of_steps(name: str, dtype: type[np.generic]) -> Tensor:
        return padded(name, dtype, steps, mode="constant")

    lengths = torch.tensor([episode.num_steps for episode in episodes])
    return Sequences(
        graph_index=of_states("graph_index", np.int64),
        counts=of_states("counts", np.float32),
        cost=of_states("cost", np.float32),
        action=of_steps("action", np.int64),
        reward=of_steps("reward", np.float32),
        terminated=of_steps("terminated", np.bool_),
        valid=torch.arange(steps) < lengths[:, None],
    )


def _pad(array: np.ndarray, length: int, mode: str) -> np.ndarray:
    widths = [(0, length - len(array))] + [(0, 0)] * (array.ndim - 1)
    return np.pad(array, widths, mode=mode)  # type: ignore[call-overload, no-any-return]
