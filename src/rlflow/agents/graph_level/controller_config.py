"""Settings of the controller over (rule, location); their values live in conf/."""

from dataclasses import dataclass

from rlflow.agents.ppo_config import PPOConfig


@dataclass(frozen=True)
class ControllerConfig(PPOConfig):
    """Settings of the controller's network, beside those of PPO."""

    width: int = 128
    rule_embedding: int = 16
    terminate_bias: float = -2.0  # initial logit: look around before leaving
