"""Settings of the agent over candidate graphs; their values live in conf/."""

from dataclasses import dataclass

from rlflow.agents.ppo_config import PPOConfig
from rlflow.errors import InputError


@dataclass(frozen=True)
class CandidateNetworkConfig:
    """Settings of the network: its width, the rounds of attention, and what it knows before it has learned.

    priced: what each candidate saves is part of what is seen; false: graphs alone are, as where latency is measured.
    greedy_weight: before anything is learned, the logit of the candidate that saves most, of others their share of it;
    0 of those that save nothing, so that losses are tried where nothing is gained.
    """

    width: int = 32
    attention_layers: int = 3
    attention_heads: int = 4
    priced: bool = True
    greedy_weight: float = 5.0
    terminate_bias: float = -3.0

    def __post_init__(self) -> None:
        if self.attention_layers < 1 or self.attention_heads < 1 or self.width % self.attention_heads:
            raise InputError(
                f"candidates: {self.attention_layers} layers of {self.attention_heads} heads at width {self.width}; "
                "give at least one of each, and a width that is a multiple of the heads"
            )


@dataclass(frozen=True)
class CandidateControllerConfig(PPOConfig):
    """Settings of PPO on the graph itself; steps are rewrites, over all episodes side by side.

    greedy_starts: the share of episodes that begin on greedy search's way. states_in_memory: the most states whose
    arrays are kept; those of an update must be among them.
    """

    total_steps: int = 4096
    steps_per_update: int = 16
    updates_per_trial: int = 1
    batch_size: int = 64
    epochs: int = 4
    learning_rate: float = 3e-3
    entropy_weight: float = 0.02
    reward_scale: float = 1.0
    num_envs: int = 16
    greedy_starts: float = 0.5
    states_in_memory: int = 4096
