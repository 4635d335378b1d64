"""A toy dream over classes of matches: what each pays is written in its embedding, so the best policy is known."""

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from rlflow.world_model.dream_env import DreamEnv, States
from rlflow.world_model.match_level.observation import TokenLayout

KINDS = 3
LAYOUT = TokenLayout(KINDS, 2)


class KindDream(DreamEnv):
    """Three classes of one match each; taking a class pays the first number of its embedding, and uses it up.

    The second number tells nothing, and the saving that V reads is 0. Kinds come in an order that differs from start
    to start: one pays 1, one pays 2 and one -3, so the best return is 3. Terminate is the action `KINDS`.
    """

    BEST = 3.0

    def __init__(self, *, num_envs: int = 8, seed: int = 0) -> None:
        orders = torch.tensor([[0, 1, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]])
        self.pays = torch.tensor([1.0, 2.0, -3.0])[orders]
        super().__init__(
            spaces.Box(-np.inf, np.inf, (LAYOUT.size,), np.float32),
            spaces.Discrete(KINDS + 1),
            terminate=torch.tensor(KINDS),
            initial=torch.ones(len(orders), dtype=torch.bool),
            initial_fraction=1.0,
            num_envs=num_envs,
            max_steps=4,
            seed=seed,
        )

    def start_states(self, index: Tensor) -> States:
        """The start states at index (B,)."""
        cost = torch.full((len(index),), 100.0)
        return {"pays": self.pays[index], "left": torch.ones(len(index), KINDS), "cost": cost}

    def is_valid(self, states: States, action: Tensor) -> Tensor:
        """Whether the class has a match left; terminate is always valid."""
        left = torch.nn.functional.pad(states["left"], (0, 1), value=1.0)
        return left.gather(1, action[:, None]).squeeze(1) > 0

    def imagine(self, states: States, action: Tensor) -> tuple[States, Tensor, Tensor]:
        """Take the classes."""
        taken = torch.nn.functional.one_hot(action, KINDS + 1)[:, :KINDS]
        saved = (taken * states["pays"]).sum(dim=1)
        after = {"pays": states["pays"], "left": states["left"] * (1 - taken), "cost": states["cost"] - saved}
        return after, saved, action == KINDS

    def observe(self, states: States) -> np.ndarray:
        """Embeddings (what it pays, 1), logit and saving 0, the logarithm of 1 + the count, and no nearness."""
        left, pays = states["left"], states["pays"]
        none = torch.zeros_like(pays)
        numbers = [pays, torch.ones_like(pays), none, none, torch.log1p(left), none]
        classes = torch.stack(numbers, dim=-1) * left[..., None]
        return torch.cat([classes.flatten(1), torch.zeros(len(pays), 1)], dim=1).numpy()
