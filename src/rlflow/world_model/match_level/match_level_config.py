"""Settings of the world model over match tokens; their values live in conf/."""

from dataclasses import dataclass


@dataclass(frozen=True)
class MatchLevelModelConfig:
    """Settings of V (`encoder_*`) and of M (the rest): sizes first, then those of the fit."""

    encoder_width: int = 64
    encoder_layers: int = 4  # rounds of message passing: how far a node of a token sees
    encoder_epochs: int = 20  # passes of V over the distinct tokens
    encoder_batch: int = 128  # tokens of a gradient step of V
    encoder_learning_rate: float = 2e-3
    births_weight: float = 0.1  # of what V must tell of births, beside what it must tell of savings
    worth_weight: float = 0.3  # of what V must tell of an expert's choices
    metric_width: int = 64  # of the space in which M compares rewrites
    survival_width: int = 64
    largest_birth_set: int = 48  # matches that one rewrite bears or turns; what is beyond is left out
    epochs: int = 20  # passes of M over the steps
    steps_per_batch: int = 128  # steps of a gradient step of M
    learning_rate: float = 3e-3  # decays to 0 with power 2 over the run, V and M alike
    max_gradient_norm: float = 1.0
    held_out_fraction: float = 0.1  # of the episodes, never trained on


@dataclass(frozen=True)
class MatchLevelDreamConfig:
    """Settings of the batched environment that M dreams over match tokens."""

    num_envs: int = 64
    max_steps: int = 30  # horizon: choices, each of all matches of a class
    max_kinds: int = 128  # classes of matches that a dream holds; what is beyond is left out
    candidates: int = 8  # birth sets of a token from which one is drawn: the likeliest ones
    temperature: float = 1.0  # tau, of the mixture over birth sets
    pessimism: float = 0.5  # standard errors of a saving that V tells, on the scale of asinh, taken off it
    birth_pessimism: float = 0.5  # what the asinh of the saving that a birth set promises takes off its logit
    initial_fraction: float = 0.5  # of the episodes that start where real ones do; others at a visited state
