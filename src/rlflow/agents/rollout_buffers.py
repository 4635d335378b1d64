"""Rollout buffers of PPO for policies that read their masks from the observation."""

import numpy as np
import torch
from sb3_contrib.common.maskable.buffers import MaskableDictRolloutBuffer, MaskableRolloutBuffer


class _WithoutMasks:
    """A rollout buffer without masks, which the observations carry; one column of ones satisfies the interface."""

    buffer_size: int
    n_envs: int

    def reset(self) -> None:
        """Empty the buffer."""
        super().reset()  # type: ignore[misc]
        self.mask_dims = 1
        self.action_masks = np.ones((self.buffer_size, self.n_envs, 1), dtype=np.float32)

    @staticmethod
    def swap_and_flatten(array: np.ndarray) -> np.ndarray:
        """Return the rows of all steps and environments end to end, not copied: minibatches are drawn in any order."""
        return array.reshape(-1, *array.shape[2:])

    def to_torch(self, array: np.ndarray, copy: bool = True) -> torch.Tensor:
        """Return a tensor on the same memory: rows that were picked out for a minibatch are a copy already."""
        return super().to_torch(array, copy=False)  # type: ignore[misc]


class MaskFreeBuffer(_WithoutMasks, MaskableRolloutBuffer):
    """A rollout buffer without masks, of flat observations."""


class MaskFreeDictBuffer(_WithoutMasks, MaskableDictRolloutBuffer):
    """A rollout buffer without masks, of observations in named parts."""
