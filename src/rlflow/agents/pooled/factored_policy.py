"""A policy over (rule, location) that draws the rule under its mask, then the location given the rule.

With counts (2, 0, 5), rules 0 and 2 and terminate are valid; if rule 2 is drawn, its locations 0 to 4 are. Nothing of
size rules x locations is ever computed or stored: docs/decisions.md, 7, says why.

The invariant: the log-probability of an action is the same when it is sampled and when PPO evaluates it, so that the
probability ratio is exactly 1 before the first update.
"""

from collections.abc import Callable
from typing import Any

import torch
from sb3_contrib.common.maskable.distributions import MaskableDistribution
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from rlflow.nn.masking import masked_entropy, masked_log_softmax, prefix_mask, rule_mask, sample_categorical
from rlflow.nn.mlp import mlp
from rlflow.world_model.pooled.latent_state import ObservationLayout


class FactoredDistribution(MaskableDistribution):
    """The distribution p(rule) p(location | rule) of a batch, with the masks already in it.

    rule_log_probability (B, R + 1), -inf where masked. location_log_probability: rule (B,) -> (B, L), -inf
    beyond the rule's matches; computed for the rules asked for, never for all R x L.
    """

    def __init__(self, rule_log_probability: Tensor, location_log_probability: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.rule_log_probability = rule_log_probability
        self.location_log_probability = location_log_probability

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

    def apply_masking(self, masks: Any) -> None:
        """Refused: the counts in the observation carry the mask; learn with use_masking=False."""
        if masks is not None:
            raise NotImplementedError("FactoredPolicy reads its masks from the observation: use_masking=False")

    def proba_distribution_net(self, *args: Any, **kwargs: Any) -> nn.Module:
        """Refused: the policy owns its heads."""
        raise NotImplementedError

    def proba_distribution(self, *args: Any, **kwargs: Any) -> "FactoredDistribution":
        """Refused: the distribution is built with its parameters."""
        raise NotImplementedError

    def actions_from_params(self, *args: Any, **kwargs: Any) -> Tensor:
        """Refused: the distribution is built with its parameters."""
        raise NotImplementedError

    def log_prob_from_params(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Refused: the distribution is built with its parameters."""
        raise NotImplementedError


class FactoredPolicy(MaskableActorCriticPolicy):
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

    def _build(self, lr_schedule: Schedule) -> None:
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

        settings = {"lr": lr_schedule(1), **self.optimizer_kwargs}
        self.optimizer = self.optimizer_class(self.parameters(), **settings)

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

    def forward(
        self, obs: Tensor, deterministic: bool = False, action_masks: Any = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Actions (B, 2), values (B, 1) and log-probabilities (B,)."""
        distribution = self.get_distribution(obs, action_masks)
        actions = distribution.get_actions(deterministic=deterministic)
        return actions, self.predict_values(obs), distribution.log_prob(actions)

    def evaluate_actions(self, obs: Tensor, actions: Tensor, action_masks: Any = None) -> tuple[Tensor, Tensor, Tensor]:
        """Values (B, 1), log-probabilities (B,) and entropies (B,) for PPO's update.

        The masks that the rollout buffer hands in are ignored: the observation carries them.
        """
        distribution = self.distribution(obs)
        entropy = distribution.entropy_given(actions[:, 0].long())
        return self.predict_values(obs), distribution.log_prob(actions), entropy

    def get_distribution(self, obs: Any, action_masks: Any = None) -> FactoredDistribution:
        """The policy at obs."""
        distribution = self.distribution(obs)
        distribution.apply_masking(action_masks)
        return distribution

    def _predict(  # type: ignore[override]
        self, observation: Any, deterministic: bool = False, action_masks: Any = None
    ) -> Tensor:
        return self.get_distribution(observation, action_masks).get_actions(deterministic=deterministic)

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
