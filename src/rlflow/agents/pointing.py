"""Policies that point at one of some choices, such as classes of matches or candidate graphs, or terminate.

A subclass reads observations: a feature vector for each choice, and a context for all of a row. The heads are the same
for every such policy:

    choices  A, B, C  ->  h_A, h_B, h_C  and a context
    logits   f(h_A, context), f(h_B, context), f(h_C, context), g(context)      the last one is terminate
    value    v(context)

The invariant: choices in another order have the same logits in that order, and empty places change nothing, so a policy
may act where it has more choices than in its training.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from rlflow.agents.observed_masks import ObservedMaskDistribution, ObservedMaskPolicy
from rlflow.nn.masking import masked_entropy, masked_log_softmax, perturbed, rule_mask, sample_categorical
from rlflow.nn.mlp import mlp


@dataclass(frozen=True, eq=False)
class PointerDistribution(ObservedMaskDistribution):
    """The distribution over K choices and terminate: log_probability (B, K + 1), -inf where masked."""

    log_probability: Tensor

    @classmethod
    def of(cls, choices: Tensor, terminate: Tensor, present: Tensor) -> PointerDistribution:
        """From logits of choices (B, K) and of terminate (B, 1), where choices are `present` (B, K) bool."""
        return cls(masked_log_softmax(torch.cat([choices, terminate], dim=-1), rule_mask(present)))

    def apply_masking(self, masks: Any) -> None:
        """Accept masks (B, K + 1) that an environment tells, which are those that the observation carries.

        `ValueError` for others, by which PPO would not evaluate what was sampled.
        """
        valid = torch.isfinite(self.log_probability)
        if masks is not None and not torch.equal(torch.as_tensor(masks, dtype=torch.bool), valid):
            raise ValueError("these masks are not those that the observation carries")

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw one action per row, (B,)."""
        return sample_categorical(self.log_probability, generator)

    def mode(self) -> Tensor:
        """The likeliest action of each row, (B,)."""
        return self.log_probability.argmax(dim=-1)

    def log_prob(self, actions: Tensor) -> Tensor:
        """Log-probability (B,) of actions (B,); -inf for an invalid one."""
        return self.log_probability.gather(-1, actions.long()[:, None]).squeeze(-1)

    def entropy(self) -> Tensor:
        """Entropy (B,) in nats."""
        return masked_entropy(self.log_probability)

    def likeliest(self, number: int, generator: torch.Generator | None = None) -> list[int]:
        """Return up to `number` places of the first row's choices, the most probable first, without terminate.

        With a generator they are drawn without replacement.
        """
        probability = self.log_probability[0, :-1]
        score = probability if generator is None else perturbed(probability, generator)
        places: list[int] = score.topk(min(number, len(score))).indices.tolist()
        return [place for place in places if torch.isfinite(probability[place])]


class Reading(NamedTuple):
    """Features (N, H) of the choices, end to end; present (B, K) bool; row (N,); context (B, D).

    prior: (N,), a logit that a choice has beside what the heads make of it; None: there is none.
    """

    choices: Tensor
    present: Tensor
    row: Tensor
    context: Tensor
    prior: Tensor | None = None


class PointingPolicy(ObservedMaskPolicy):
    """Actor and critic that share a reading; action K, beyond the last place, is terminate."""

    @abstractmethod
    def read(self, observation: Tensor) -> Reading:
        """Read a batch of observations."""

    def build_heads(self, width: int, context: int, terminate_bias: float) -> None:
        """Make the networks of scores, of terminate and of the critic, for features of `width` and a context."""
        self.of_kind = nn.Linear(width, width)
        self.of_context = nn.Linear(context, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)
        self.terminate = mlp([context, width, 1], nn.Tanh)
        self.critic = mlp([context, width, width, 1], nn.Tanh)

        for head in (self.score, self.terminate[-1]):
            assert isinstance(head, nn.Linear)
            nn.init.orthogonal_(head.weight, gain=0.01)  # nearly uniform at first, as PPO wants it
        nn.init.constant_(self.terminate[-1].bias, terminate_bias)  # type: ignore[arg-type]

    def distribution(self, observation: Tensor) -> PointerDistribution:
        """The policy at a batch of observations."""
        return self.pointer(self.read(observation))

    def predict_values(self, obs: Any) -> Tensor:
        """Values (B, 1)."""
        return self.critic(self.read(obs).context)

    def distribution_and_values(self, observation: Tensor) -> tuple[PointerDistribution, Tensor]:
        """Both, from one reading."""
        reading = self.read(observation)
        return self.pointer(reading), self.critic(reading.context)

    def pointer(self, reading: Reading) -> PointerDistribution:
        """The distribution that the heads make of a reading."""
        mixed = self.of_kind(reading.choices) + self.of_context(reading.context).index_select(0, reading.row)
        scores = self.score(torch.tanh(mixed)).squeeze(-1)
        if reading.prior is not None:
            scores = scores + reading.prior
        logits = scores.new_zeros(reading.present.shape).masked_scatter(reading.present, scores)
        return PointerDistribution.of(logits, self.terminate(reading.context), reading.present)
