"""A policy that points at one of the kinds of matches that are there, or terminates.

Every kind is read alone, by one network for all; what a state is as a whole, its context, is the mean and the maximum
over kinds, the mean over those next to the last rewrite, and the cost. A kind's logit comes from both:

    kinds    A, B, C  ->  h_A, h_B, h_C  ->  context
    logits   f(h_A, context), f(h_B, context), f(h_C, context), g(context)      the last one is terminate

The invariant: kinds in another order have the same logits in that order, and empty places change nothing, so a policy
may act on states of more kinds than it was trained on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn
from torch.nn import functional

from rlflow.agents.observed_masks import ObservedMaskDistribution, ObservedMaskPolicy
from rlflow.nn.masking import masked_entropy, masked_log_softmax, rule_mask, sample_categorical
from rlflow.nn.message_passing import scatter_sum
from rlflow.nn.mlp import mlp
from rlflow.world_model.tokens.observation import TokenLayout


class PointerDistribution(ObservedMaskDistribution):
    """The distribution over K kinds and terminate: log_probability (B, K + 1), -inf where masked."""

    def __init__(self, log_probability: Tensor) -> None:
        super().__init__()
        self.log_probability = log_probability

    @classmethod
    def of(cls, kinds: Tensor, terminate: Tensor, present: Tensor) -> PointerDistribution:
        """From logits of kinds (B, K) and of terminate (B, 1), where kinds are `present` (B, K) bool."""
        return cls(masked_log_softmax(torch.cat([kinds, terminate], dim=-1), rule_mask(present)))

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


class _Reading(NamedTuple):
    """Features (N, H) of the kinds that are there, end to end; present (B, K) bool; row (N,); context (B, D)."""

    kinds: Tensor
    present: Tensor
    row: Tensor
    context: Tensor


class PointerPolicy(ObservedMaskPolicy):
    """Actor and critic over flat observations of `TokenLayout`; action K, beyond the last place, is terminate."""

    def __init__(
        self,
        observation_space: Any,
        action_space: Any,
        lr_schedule: Schedule,
        *,
        embedding: int,
        width: int,
        terminate_bias: float,
        **kwargs: Any,
    ) -> None:
        """embedding: the width of a token's embedding."""
        self.layout = TokenLayout(int(action_space.n) - 1, embedding)
        self.width, self.terminate_bias = width, terminate_bias
        super().__init__(observation_space, action_space, lr_schedule, net_arch=[], **kwargs)

    def build_networks(self) -> None:
        """Make the networks of kinds, of their scores, of terminate and of the critic."""
        width, context = self.width, 3 * self.width + 1
        self.kind = nn.Sequential(mlp([self.layout.width, width, width]), nn.Tanh())
        self.of_kind = nn.Linear(width, width)
        self.of_context = nn.Linear(context, width, bias=False)
        self.score = nn.Linear(width, 1, bias=False)
        self.terminate = mlp([context, width, 1], nn.Tanh)
        self.critic = mlp([context, width, width, 1], nn.Tanh)

        for head in (self.score, self.terminate[-1]):
            assert isinstance(head, nn.Linear)
            nn.init.orthogonal_(head.weight, gain=0.01)  # nearly uniform at first, as PPO wants it
        nn.init.constant_(self.terminate[-1].bias, self.terminate_bias)  # type: ignore[arg-type]

    def distribution(self, observation: Tensor) -> PointerDistribution:
        """The policy at observations (B, size) of any number of kinds."""
        return self._pointer(self._read(observation))

    def predict_values(self, obs: Any) -> Tensor:
        """Values (B, 1)."""
        return self.critic(self._read(obs).context)

    def distribution_and_values(self, observation: Tensor) -> tuple[PointerDistribution, Tensor]:
        """Both, from one reading."""
        reading = self._read(observation)
        return self._pointer(reading), self.critic(reading.context)

    def _read(self, observation: Tensor) -> _Reading:
        view = self.layout.split(observation)
        row, place = view.present.nonzero(as_tuple=True)
        kinds = view.kinds[row, place]
        features = self.kind(kinds)
        batch = len(observation)

        near = self.layout.is_near(kinds)
        everywhere, nearby = _mean(features, row, batch), _mean(features[near], row[near], batch)
        context = torch.cat([everywhere, _largest(features, row, batch), nearby, view.cost], dim=-1)
        return _Reading(features, view.present, row, context)

    def _pointer(self, reading: _Reading) -> PointerDistribution:
        mixed = self.of_kind(reading.kinds) + self.of_context(reading.context).index_select(0, reading.row)
        scores = self.score(torch.tanh(mixed)).squeeze(-1)
        logits = scores.new_zeros(reading.present.shape).masked_scatter(reading.present, scores)
        return PointerDistribution.of(logits, self.terminate(reading.context), reading.present)


def _largest(values: Tensor, row: Tensor, rows: int) -> Tensor:
    """Largest (rows, H) of the values (N, H) of each `row` (N,), which ascends; 0 where there are none."""
    number = torch.bincount(row, minlength=rows)
    # a bag of embeddings keeps whose value was the largest, which makes the gradient a third as costly as `amax` does
    return functional.embedding_bag(torch.arange(len(row)), values, number.cumsum(0) - number, mode="max")


def _mean(values: Tensor, row: Tensor, rows: int) -> Tensor:
    """Mean (rows, H) of the values (N, H) of each `row` (N,); 0 where there are none."""
    number = torch.bincount(row, minlength=rows).clamp_min(1)
    return scatter_sum(values, row, rows) / number[:, None]
