"""The dream of V and M: states are vectors, match counts, costs, and M's memory of the way there."""

from dataclasses import dataclass

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from rlflow import kept
from rlflow.representation.rollouts import Rollouts
from rlflow.step_reward import INCREMENTAL, Quantity, StepReward
from rlflow.world_model.dream_env import DreamEnv, States
from rlflow.world_model.graph_level.dataset import pad_episodes
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig
from rlflow.world_model.graph_level.imagination import imagine
from rlflow.world_model.graph_level.latent_state import layout_of
from rlflow.world_model.graph_level.mdn_rnn import Hidden, State
from rlflow.world_model.graph_level.model import GraphLevelModel
from rlflow.world_model.readout import Readout


@dataclass(frozen=True)
class Starts:
    """S states in which a dream may begin, with M's memory of the way there.

    initial (S,) bool: an episode of the rollouts began here.
    """

    state: State
    hidden: Hidden
    initial: Tensor


@torch.no_grad()
def visited_states(model: GraphLevelModel, rollouts: Rollouts) -> Starts:
    """Every state of the rollouts in which an action was taken."""
    latents = model.latents(rollouts)
    sequences = pad_episodes(rollouts.episodes)
    state, _ = sequences.transitions(latents)
    h, c = model.memory.recall(state, sequences.action)

    valid = sequences.valid
    initial = torch.zeros_like(valid)
    initial[:, 0] = True
    return Starts(
        state=State(state.z[valid], state.counts[valid], state.cost[valid]),
        hidden=(h[valid], c[valid]),
        initial=initial[valid],
    )


@torch.no_grad()
def read_off(model: GraphLevelModel, rollouts: Rollouts, starts: Starts, quantity: Quantity) -> Readout:
    """Fit what steps save of a quantity to what M's heads read, in the states in which rollouts took them."""
    action = torch.from_numpy(np.concatenate([episode.action for episode in rollouts.episodes]))
    saved = np.concatenate([getattr(episode, f"{quantity}_saved") for episode in rollouts.episodes])
    features = model.memory.features(starts.state, action, starts.hidden)
    goes_on = action[:, :1] != model.memory.num_rules
    return Readout.fit(features * goes_on, torch.from_numpy(saved), quantity)


class GraphLevelDreamEnv(DreamEnv):
    """B dreams that M imagines.

    Observation: flat float32 `ObservationLayout`. Action: (rule, location) in MultiDiscrete([R + 1, L]).
    """

    def __init__(
        self,
        model: GraphLevelModel,
        starts: Starts,
        config: GraphLevelDreamConfig,
        *,
        seed: int,
        reward: StepReward = INCREMENTAL,
        readout: Readout | None = None,
    ) -> None:
        """readout: of the quantity that the reward counts beside the price (`read_off`)."""
        self.readout = readout
        self.arguments, self.memory, self.layout = model.arguments, model.memory, layout_of(model)
        self.starts, self.config = starts, config
        super().__init__(
            spaces.Box(-np.inf, np.inf, (self.layout.size,), np.float32),
            spaces.MultiDiscrete([self.memory.num_rules + 1, self.memory.max_locations]),
            terminate=torch.tensor([self.memory.num_rules, 0]),
            initial=starts.initial,
            initial_fraction=config.initial_fraction,
            num_envs=config.num_envs,
            max_steps=config.max_steps,
            seed=seed,
            reward=reward,
            beside=None if readout is None else self._saved_beside,
        )

    def start_states(self, index: Tensor) -> States:
        """The start states at index (B,)."""
        whole = _joined(self.starts.state, self.starts.hidden)
        return {name: rows[index] for name, rows in whole.items()}

    def is_valid(self, states: States, action: Tensor) -> Tensor:
        """Return (B,) bool: the masks admit the actions (B, 2)."""
        rule, location = action.unbind(dim=-1)
        # terminate counts as a rule with one match
        matches = torch.nn.functional.pad(states["counts"], (0, 1), value=1.0)
        return location < matches.gather(-1, rule[:, None]).squeeze(-1)

    def imagine(self, states: States, action: Tensor) -> tuple[States, Tensor, Tensor]:
        """Ask M for the outcome of valid actions (B, 2)."""
        before, hidden = _parted(states)
        after, saved, terminated, hidden = imagine(self.memory, before, action, hidden, self.config, self.generator)
        return _joined(after, hidden), saved, terminated

    def _saved_beside(self, states: States, action: Tensor) -> Tensor:
        assert self.readout is not None
        before, hidden = _parted(states)
        saved = self.readout(self.memory.features(before, action, hidden))
        return torch.where(action[:, 0] == self.memory.num_rules, 0.0, saved)

    def observe(self, states: States) -> np.ndarray:
        """Observations (B, size)."""
        return self.layout.flatten(*_parted(states)).numpy()

    @property
    def fingerprint(self) -> str:
        """Hash of the dream: model, starts and settings."""
        starts = (*_joined(self.starts.state, self.starts.hidden).values(), self.starts.initial)
        read_off = () if self.readout is None else (self.readout.weights,)
        tensors = (*self.memory.state_dict().values(), *starts, *read_off)
        return kept.fingerprint(
            self.config, self.arguments, self.reward, content=(tensor.numpy() for tensor in tensors)
        )


def _joined(state: State, hidden: Hidden) -> States:
    """State and recurrent state as tensors by name."""
    return {"z": state.z, "counts": state.counts, "cost": state.cost, "h": hidden[0], "c": hidden[1]}


def _parted(states: States) -> tuple[State, Hidden]:
    """The same as M reads them."""
    return State(states["z"], states["counts"], states["cost"]), (states["h"], states["c"])
