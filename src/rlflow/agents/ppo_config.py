"""Settings of PPO, whatever it trains; their values live in conf/."""

from dataclasses import dataclass, replace
from typing import Self


@dataclass(frozen=True)
class PPOConfig:
    """Settings of MaskablePPO in the dream; steps are imagined ones, over all dreams of the batch."""

    total_steps: int = 300_000
    steps_per_update: int = 64  # of each dream
    updates_per_trial: int = 4  # between two trials on the real graph; the best snapshot is kept
    batch_size: int = 1024
    epochs: int = 4
    learning_rate: float = 1e-3  # decays linearly to 0
    discount: float = 0.995  # the objective is the undiscounted sum
    gae_lambda: float = 0.95
    clip_range: float = 0.2
    entropy_weight: float = 0.01
    value_weight: float = 0.5
    max_gradient_norm: float = 0.5
    reward_scale: float = 0.1  # rewards come in percent; ten percent are one

    def rounds(self, num_envs: int) -> int:
        """Return the number of updates in so many dreams."""
        return -(-self.total_steps // (num_envs * self.steps_per_update))

    def steps_per_round(self, max_steps: int) -> int:
        """Return the steps of each dream for an update, however long an episode may be."""
        return self.steps_per_update

    def shortened(self, share: float) -> Self:
        """Return the settings of a share of the training."""
        return replace(self, total_steps=round(share * self.total_steps))
