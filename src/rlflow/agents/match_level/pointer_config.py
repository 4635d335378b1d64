"""Settings of the controllers over match tokens; their values live in conf/."""

from dataclasses import dataclass, replace
from typing import Self

from rlflow.agents.ppo_config import PPOConfig


@dataclass(frozen=True)
class MatchLevelControllerConfig(PPOConfig):
    """Settings of the pointer network, beside those of PPO.

    Before anything is learned, the logit of a class is greedy_weight x its share of what the best class saves, as V
    reads it, + expert_weight x how far it is behind the class that an expert most likely takes, in logits;
    terminate_bias is that of terminate.
    """

    steps_per_update: int = 30  # of each dream: a horizon
    batch_size: int = 256
    epochs: int = 3
    learning_rate: float = 3e-3
    reward_scale: float = 1.0  # most rewrites save less than a percent
    width: int = 32
    greedy_weight: float = 3.0
    expert_weight: float = 1.0
    terminate_bias: float = -1.0


@dataclass(frozen=True)
class RealEpisodesConfig:
    """Episodes of at most `max_steps` choices from the original; a policy sees at most `max_kinds` match classes."""

    num_envs: int = 16
    max_steps: int = 12
    max_kinds: int = 128


@dataclass(frozen=True)
class CmaEsConfig:
    """Settings of the evolution of a linear controller in the dream."""

    generations: int = 100
    population: int = 24  # controllers of a generation, all tried in the same dreams
    initial_sigma: float = 0.3  # standard deviation of the weights around 0 at first
    generations_per_trial: int = 10  # between two trials on the real graph; the best snapshot is kept

    def rounds(self, num_envs: int) -> int:
        """Return the number of generations, however many dreams there are."""
        return self.generations

    def steps_per_round(self, max_steps: int) -> int:
        """Return the most steps of each dream for a generation, with episodes of at most so many."""
        return self.population * max_steps

    def shortened(self, share: float) -> Self:
        """Return the settings of a share of the training, a generation at least."""
        return replace(self, generations=max(1, round(share * self.generations)))
