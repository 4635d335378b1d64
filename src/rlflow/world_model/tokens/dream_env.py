"""The dream over match tokens: tables of kinds of matches, of which each action takes one.

    env = TokenDreamEnv(model, knowledge, starts, config, seed=0)
    env.step(np.array([3, 17, K]))          a kind each; K, beyond the last place, is terminate

The observation carries its mask: kinds of which there is no match have a count of 0 (`observation.py`).
"""

from __future__ import annotations

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from rlflow import kept
from rlflow.world_model.dream_env import DreamEnv, States, with_rows
from rlflow.world_model.tokens.config import TokenDreamConfig
from rlflow.world_model.tokens.imagination import KindStates, imagine
from rlflow.world_model.tokens.knowledge import Knowledge
from rlflow.world_model.tokens.observation import TokenLayout
from rlflow.world_model.tokens.starts import TokenStarts
from rlflow.world_model.tokens.token_memory import TokenMemory


class TokenDreamEnv(DreamEnv):
    """Observation: flat float32 `TokenLayout`. Action: Discrete(K + 1), the place of a kind, or K for terminate."""

    def __init__(
        self, memory: TokenMemory, knowledge: Knowledge, starts: TokenStarts, config: TokenDreamConfig, *, seed: int
    ) -> None:
        self.memory, self.knowledge, self.starts, self.config = memory, knowledge, starts, config
        self.layout = TokenLayout(config.max_kinds, knowledge.reading.embedding.shape[1])
        self._looks = self.layout.looks(knowledge.reading.embedding, knowledge.reading.saving)
        super().__init__(
            spaces.Box(-np.inf, np.inf, (self.layout.size,), np.float32),
            spaces.Discrete(config.max_kinds + 1),
            terminate=torch.tensor(config.max_kinds),
            initial=starts.initial,
            initial_fraction=config.initial_fraction,
            num_envs=config.num_envs,
            max_steps=config.max_steps,
            seed=seed,
        )

    def start_states(self, index: Tensor) -> States:
        """The start states at index (B,)."""
        return vars(self.starts.states.rows(index))

    def is_valid(self, states: States, action: Tensor) -> Tensor:
        """Return (B,) bool: there is a match of that kind, or the action is terminate."""
        present = torch.nn.functional.pad(states["count"] > 0, (0, 1), value=True)
        return present.gather(1, action[:, None]).squeeze(1)

    def imagine(self, states: States, action: Tensor) -> tuple[States, Tensor, Tensor]:
        """Next states, rewards (B,) in percent and ends (B,) bool; terminate leaves a state as it is."""
        ended = action == self.config.max_kinds
        if not ended.any():  # mostly: then no row need be copied out and back
            after, reward = self._rewritten(KindStates(**states), action)
            return vars(after), reward, ended
        going = torch.nonzero(~ended).squeeze(-1)
        after, saved = self._rewritten(KindStates(**states).rows(going), action[going])
        reward = torch.zeros(len(action)).index_copy(0, going, saved)
        return with_rows(states, going, vars(after)), reward, ended

    def _rewritten(self, states: KindStates, kind: Tensor) -> tuple[KindStates, Tensor]:
        return imagine(self.knowledge, self.memory, states, kind, self.config, self.generator)

    def observe(self, states: States) -> np.ndarray:
        """(B, size) float32."""
        return self.layout.flatten(KindStates(**states), self._looks).numpy()

    @property
    def fingerprint(self) -> str:
        """Hash of the dream: what is known, starts and settings."""
        knowledge = self.knowledge
        known = (
            *knowledge.reading,
            knowledge.saving,
            knowledge.sigma,
            knowledge.birth_logits,
            *vars(self.starts.states).values(),
        )
        tensors = (*self.memory.state_dict().values(), *known)
        return kept.fingerprint(self.config, content=(tensor.numpy() for tensor in tensors))
