"""Settings of PPO, whatever it trains; their values live in conf/."""

from dataclasses import dataclass


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
