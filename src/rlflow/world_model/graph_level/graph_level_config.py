"""Settings of the world model and of the dream; their values live in conf/."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class GraphLevelModelConfig:
    """Settings of V (`encoder_*`) and of M (the rest): sizes first, then those of the fit."""

    latent: int = 32  # Z
    encoder_width: int = 64
    encoder_layers: int = 3  # rounds of message passing: how far a node sees
    encoder_epochs: int = 10  # reports of V's fit
    encoder_steps: int = 40  # gradient steps between two of them
    encoder_batch: int = 64  # transitions in one of them
    encoder_learning_rate: float = 2e-3
    hidden: int = 256  # H, as in the paper
    mixtures: int = 8  # K, as in the paper
    rule_embedding: int = 16
    location_embedding: int = 16
    head_width: int = 256
    max_count_change: int = 8  # D: matches of a rule that one rewrite adds or removes; more is clipped
    reward_head: Literal["shared", "separate"] = "shared"  # separate: its own network, paper section 4.8
    latent_noise: float = 0.1  # added to z in training, in standard deviations: dreams drift
    epochs: int = 20  # passes of M over the episodes
    episodes_per_batch: int = 16
    sequence_length: int = 32  # steps between truncations of the gradient; the state is carried across
    learning_rate: float = 2e-3  # decays to 0 with power 2 over the run, V and M alike
    max_gradient_norm: float = 1.0
    held_out_fraction: float = 0.1  # of the episodes, never trained on
    loss_weights: Mapping[str, float] = field(
        default_factory=lambda: {
            "latent": 1.0,
            "reward": 1.0,
            "terminated": 1.0,
            "counts": 1.0,
            "cost": 1.0,
        }
    )


@dataclass(frozen=True)
class GraphLevelDreamConfig:
    """Settings of the batched environment that M dreams."""

    num_envs: int = 64
    max_steps: int = 150  # horizon, the real environment's
    temperature: float = 1.0  # tau
    scale_sigma: bool = True  # sigma times sqrt(tau), as Ha and Schmidhuber; off: tau divides the logits alone
    count_changes: Literal["sample", "mode"] = "mode"  # of the predicted categorical distribution
    pessimism: float = 0.5  # times the expected error of a reward, taken off it: circles must not pay
    initial_fraction: float = 0.5  # of the episodes that start where real ones do; others at a visited state
