"""The controller's observation (z, h, counts, cost), the same in a dream and on the real graph."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from rlflow.representation.graph_arrays import GraphArrays
from rlflow.world_model.graph_level.mdn_rnn import Hidden, State
from rlflow.world_model.graph_level.model import GraphLevelModel


@dataclass(frozen=True)
class ObservationLayout:
    """A flat observation: z (Z), h (H), counts (R), cost (1), float32, in this order."""

    latent: int
    hidden: int
    num_rules: int

    @property
    def size(self) -> int:
        """Length of an observation."""
        return self.latent + self.hidden + self.num_rules + 1

    def flatten(self, state: State, hidden: Hidden) -> Tensor:
        """State and recurrent state of a batch -> (B, size)."""
        return torch.cat([state.z, hidden[0], state.counts, state.cost[:, None]], dim=-1)

    def split(self, observation: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Observation (..., size) -> z (..., Z), h (..., H), counts (..., R), cost (..., 1)."""
        z, hidden, counts, cost = observation.split([self.latent, self.hidden, self.num_rules, 1], dim=-1)
        return z, hidden, counts, cost


def layout_of(model: GraphLevelModel) -> ObservationLayout:
    """The layout of observations through this world model."""
    return ObservationLayout(model.memory.latent, model.memory.hidden, model.memory.num_rules)


@dataclass(frozen=True)
class LatentState:
    """A real graph seen through V and M: its encoded state and M's memory of the steps that led here (B = 1)."""

    state: State
    hidden: Hidden

    def observation(self, layout: ObservationLayout) -> np.ndarray:
        """(size,) float32, as a dream gives it."""
        return layout.flatten(self.state, self.hidden)[0].numpy()


@torch.no_grad()
def begin(model: GraphLevelModel, graph: GraphArrays, counts: np.ndarray, cost: float) -> LatentState:
    """The state at the start of an episode: counts (R,) of the world model's rules, cost in percent of the start."""
    return LatentState(_encode(model, graph, counts, cost), model.memory.initial_hidden(1))


@torch.no_grad()
def advance(
    model: GraphLevelModel,
    before: LatentState,
    action: tuple[int, int],
    graph: GraphArrays,
    counts: np.ndarray,
    cost: float,
) -> LatentState:
    """The state after an action of the world model's action space led to `graph`: M remembers it, V encodes anew."""
    _, hidden = model.memory.step(before.state, torch.tensor([action]), before.hidden)
    return LatentState(_encode(model, graph, counts, cost), hidden)


def _encode(model: GraphLevelModel, graph: GraphArrays, counts: np.ndarray, cost: float) -> State:
    capped = np.minimum(counts, model.arguments.max_locations).astype(np.float32)
    return State(
        z=model.encoder.encode([graph]),
        counts=torch.from_numpy(capped)[None],
        cost=torch.tensor([cost], dtype=torch.float32),
    )
