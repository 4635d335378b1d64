"""A policy over (rule, location) that draws the rule under its mask, then the location given the rule.

With counts (2, 0, 5), rules 0 and 2 and terminate are valid; if rule 2 is drawn, its locations 0 to 4 are. Nothing of
size rules x locations is ever computed or stored: docs/decisions.md, 7, says why.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from rlflow.agents.observed_masks import ObservedMaskDistribution, ObservedMaskPolicy
from rlflow.nn.masking import masked_entropy, masked_log_softmax, prefix_mask, rule_mask, sample_categorical
from rlflow.nn.mlp import mlp
from rlflow.world_model.graph_level.latent_state import ObservationLayout


@dataclass(frozen=True, eq=False)
class FactoredDistribution(ObservedMaskDistribution):
    """The distribution p(rule) p(location | rule) of a batch, with the masks already in it.

    rule_log_probability (B, R + 1), -inf where masked. location_log_probability: rule (B,) -> (B, L), -inf
    beyond the rule's matches; computed for the rules asked for, never for all R x L.
    """

    rule_log_probability: Tensor
    location_log_probability: Callable[[Tensor], Tensor]

    def sample(self, generator: torch.Generator | None = None) -> Tensor:
        """Draw one action per row, (B, 2)."""
        rule = sample_categorical(self.rule_log_probability, generator)
        location = sample_categorical(self.location_log_probability(rule), generator)
        return torch.stack([rule, location], dim=-1)

    def mode(self) -> Tensor:
        """The likeliest rule, then its likeliest location, (B, 2)."""
        rule = self.rule_log_probability.argmax(dim=-1)
        return torch.stack([rule, self.location_log_probability(rule).argmax(dim=-1)], dim=-1)

    def log_prob(self, actions: Tensor) -> Tensor:
        """Log-probability (B,) of actions (B, 2); -inf for an invalid one."""
        rule, location = actions.long().unbind(dim=-1)
        chosen = self.rule_log_probability.gather(-1, rule[:, None])
        place = self.location_log_probability(rule).gather(-1, location[:, None])
        return (chosen + place).squeeze(-1)

    def entropy_at(self, actions: Tensor) -> Tensor:
        """Entropy (B,) of the rule, plus that of the location under the rule of each of the actions (B, 2)."""
        return self.entropy_given(actions[:, 0].long())

    def entropy_given(self, rule: Tensor) -> Tensor:
        """Entropy of the rule, plus that of the location under the one `rule` (B,).

        Its expectation under the policy is `entropy`; it takes one row of locations instead of R.
        """
        of_rule = masked_entropy(self.rule_log_probability)
        of_location = masked_entropy(self.location_log_probability(rule))
        return of_rule + of_location

    def entropy(self) -> Tensor:
        """Entropy (B,) in nats of the pair."""
        total = masked_entropy(self.rule_log_probability)
        for index in range(self.rule_log_probability.shape[-1]):
            rule = torch.full_like(self.rule_log_probability[:, 0], index, dtype=torch.int64)
            probability = self.rule_log_probability[:, index].exp()
            # a masked rule has no location, hence nothing to average
            inside = masked_entropy(self.location_log_probability(rule))
            total = total + torch.where(probability > 0, probability * inside, 0.0)
        return total


class FactoredPolicy(ObservedMaskPolicy):
    """Actor and critic over flat observations (z, h, counts, cost).

    Stock masking of MultiDiscrete is independent per dimension and admits locations that the chosen rule does
    not have. Here the location head sees the rule, and its mask is that rule's prefix. Terminate has one
    location, so that its log-probability adds nothing.
    """

    def __init__(
        self,
        observation_space: Any,
        action_space: Any,
        lr_schedule: Schedule,
        *,
        layout: ObservationLayout,
        width: int,
        rule_embedding: int,
        terminate_bias: float,
        **kwargs: Any,
    ) -> None:
        self.layout = layout
        self.num_rules, self.max_locations = int(action_space.nvec[0]) - 1, int(action_space.nvec[1])
        self.width, self.embedding_width, self.terminate_bias = width, rule_embedding, terminate_bias
        super().__init__(observation_space, action_space, lr_schedule, net_arch=[], **kwargs)

    def build_networks(self) -> None:
        """Make actor, critic and the two heads."""
        inputs = self.layout.latent + self.layout.hidden + 2 * self.num_rules + 1
        width = self.width

        self.actor = nn.Sequential(mlp([inputs, width, width], nn.Tanh), nn.Tanh())
        self.critic = mlp([inputs, width, width, 1], nn.Tanh)
        self.rule_head = nn.Linear(width, self.num_rules + 1)
        self.rule_embedding = nn.Embedding(self.num_rules + 1, self.embedding_width)
        self.location_head = mlp([width + self.embedding_width, width, self.max_locations], nn.Tanh)

        for head in (self.rule_head, self.location_head[-1]):
            assert isinstance(head, nn.Linear)
            # nearly uniform at first, as PPO wants it
            nn.init.orthogonal_(head.weight, gain=0.01)
            nn.init.zeros_(head.bias)
        with torch.no_grad():
            self.rule_head.bias[-1] = self.terminate_bias

    def distribution(self, observation: Tensor) -> FactoredDistribution:
        """The policy at observations (B, size)."""
        counts = self.layout.split(observation)[2]
        features = self.actor(self._features(observation))
        rule = masked_log_softmax(self.rule_head(features), rule_mask(counts))
        matches = nn.functional.pad(counts, (0, 1), value=1.0)

        def location(chosen: Tensor) -> Tensor:
            logits = self.location_head(torch.cat([features, self.rule_embedding(chosen)], dim=-1))
            # a rule without matches is never chosen; one location keeps its row free of nan
            valid = matches.gather(-1, chosen[:, None]).clamp_min(1.0).squeeze(-1)
            return masked_log_softmax(logits, prefix_mask(valid, self.max_locations))

        return FactoredDistribution(rule, location)

    def predict_values(self, obs: Any) -> Tensor:
        """Values (B, 1)."""
        return self.critic(self._features(obs))

    def _features(self, observation: Tensor) -> Tensor:
        """The observation with every part near unit scale; z is already, but a dream may carry it far."""
        z, hidden, counts, cost = self.layout.split(observation)
        scale = torch.log1p(torch.tensor(float(self.max_locations)))
        scaled = torch.log1p(counts) / scale
        parts = [z.clamp(-5.0, 5.0), hidden, scaled, (counts > 0).float(), cost / 100.0 - 1.0]
        return torch.cat(parts, dim=-1)
