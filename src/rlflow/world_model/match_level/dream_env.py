"""The dream over match tokens: tables of classes of matches, of which each action takes all of one class.

    env = MatchLevelDreamEnv(model, precomputed, starts, config, seed=0)
    env.step(np.array([3, 17, K]))          a kind each; K, beyond the last place, is terminate

The observation carries its mask: kinds of which there is no match have a count of 0 (`observation.py`).
"""

from __future__ import annotations

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from rlflow import kept
from rlflow.step_reward import INCREMENTAL, StepReward
from rlflow.world_model.dream_env import DreamEnv, States, with_rows
from rlflow.world_model.match_level.imagination import ClassStates, imagine, matches_apart
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig
from rlflow.world_model.match_level.observation import TokenLayout
from rlflow.world_model.match_level.precomputed import PrecomputedModel
from rlflow.world_model.match_level.starts import TokenStarts
from rlflow.world_model.match_level.token_memory import TokenMemory
from rlflow.world_model.match_level.token_readout import TokenReadout


class MatchLevelDreamEnv(DreamEnv):
    """Observation: flat float32 `TokenLayout`. Action: Discrete(K + 1), the place of a class, or K for terminate."""

    def __init__(
        self,
        memory: TokenMemory,
        precomputed: PrecomputedModel,
        starts: TokenStarts,
        config: MatchLevelDreamConfig,
        *,
        seed: int,
        reward: StepReward = INCREMENTAL,
        readout: TokenReadout | None = None,
    ) -> None:
        """readout: of the quantity that the reward counts beside the price."""
        self.readout = readout
        self.memory, self.precomputed, self.starts, self.config = memory, precomputed, starts, config
        self.layout = TokenLayout(config.max_kinds, precomputed.reading.embedding.shape[1])
        self._looks = self.layout.looks(precomputed.reading, precomputed.apart)
        super().__init__(
            spaces.Box(-np.inf, np.inf, (self.layout.size,), np.float32),
            spaces.Discrete(config.max_kinds + 1),
            terminate=torch.tensor(config.max_kinds),
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
        return vars(self.starts.states.rows(index))

    def is_valid(self, states: States, action: Tensor) -> Tensor:
        """Return (B,) bool: there is a match of that class, or the action is terminate."""
        return _valid(states).gather(1, action[:, None]).squeeze(1)

    def action_masks(self) -> np.ndarray:
        """(B, K + 1) bool, as sb3-contrib asks for them."""
        return _valid(self.states).numpy()

    def imagine(self, states: States, action: Tensor) -> tuple[States, Tensor, Tensor]:
        """Next states, savings (B,) in percent and ends (B,) bool; terminate leaves a state as it is."""
        ended = action == self.config.max_kinds
        if not ended.any():  # mostly: then no row need be copied out and back
            after, saved = self._rewritten(ClassStates(**states), action)
            return vars(after), saved, ended
        going = torch.nonzero(~ended).squeeze(-1)
        after, saved = self._rewritten(ClassStates(**states).rows(going), action[going])
        saved = torch.zeros(len(action)).index_copy(0, going, saved)
        return with_rows(states, going, vars(after)), saved, ended

    def _rewritten(self, states: ClassStates, match_class: Tensor) -> tuple[ClassStates, Tensor]:
        return imagine(self.precomputed, self.memory, states, match_class, self.config, self.generator)

    def _saved_beside(self, states: States, action: Tensor) -> Tensor:
        assert self.readout is not None
        ended = action == self.config.max_kinds
        place = torch.where(ended, 0, action)[:, None]
        token, count = (states[name].gather(1, place).squeeze(1) for name in ("token", "count"))
        saved = self.readout(token, matches_apart(count, self.precomputed.apart[token]))
        return torch.where(ended, 0.0, saved)

    def observe(self, states: States) -> np.ndarray:
        """(B, size) float32."""
        return self.layout.flatten(ClassStates(**states), self._looks).numpy()

    @property
    def fingerprint(self) -> str:
        """Hash of the dream: what is known, starts and settings."""
        precomputed = self.precomputed
        known = (
            *precomputed.reading,
            precomputed.saving,
            precomputed.sigma,
            precomputed.apart,
            precomputed.birth_logits,
            precomputed.likeliest,
            *vars(precomputed.sets).values(),
            *vars(self.starts.states).values(),
            *([] if self.readout is None else [self.readout.saving]),
        )
        tensors = (*self.memory.state_dict().values(), *known)
        return kept.fingerprint(self.config, self.reward, content=(tensor.numpy() for tensor in tensors))


def _valid(states: States) -> Tensor:
    """(B, K + 1) bool: the classes that are there, and terminate."""
    return torch.nn.functional.pad(states["count"] > 0, (0, 1), value=True)
