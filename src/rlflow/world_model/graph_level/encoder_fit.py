"""Fit V: the state of the graph and the effect of every rule must be readable from z.

V has no target of its own, so two heads give it one: from z alone, what the graph is (match counts, cost, operators);
from z and a rule, what the rule does (changes of the counts, reward). The heads are thrown away afterwards.
"""

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from rlflow.nn.mlp import mlp
from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.graph_level.dataset import Sequences
from rlflow.world_model.graph_level.graph_encoder import GraphEncoder, quotient
from rlflow.world_model.graph_level.graph_level_config import GraphLevelModelConfig
from rlflow.world_model.optimisation import descend


class EncoderObjective(nn.Module):
    """The two heads on z (B, Z): what the graph is, and, given a rule (B,), what the rule does to it."""

    def __init__(self, latent: int, num_rules: int, state_targets: int, effect_targets: int, width: int) -> None:
        super().__init__()
        self.state = mlp([latent, width, state_targets])
        self.rule = nn.Embedding(num_rules + 1, width)
        self.effect = mlp([latent + width, width, effect_targets])

    def forward(self, z: Tensor, rule: Tensor, state: Tensor, effect: Tensor) -> Tensor:
        """Mean squared error of both; state (B, S) and effect (B, S') are standardised."""
        read = self.effect(torch.cat([z, self.rule(rule)], dim=-1))
        return functional.mse_loss(self.state(z), state) + functional.mse_loss(read, effect)


class EncoderFit:
    """V's share of the fit, in epochs of gradient steps on the graphs of random transitions.

    State targets: match counts, cost, operator histogram. Effect targets: changes of the counts, reward.
    """

    def __init__(
        self, encoder: GraphEncoder, rollouts: Rollouts, training: Sequences, config: GraphLevelModelConfig
    ) -> None:
        self.encoder, self.graphs, self.config = encoder, rollouts.graphs, config
        encoder.set_scale(rollouts.graphs)

        # The histogram of operators stands where a latent would: `state.z` below is the histogram of each state.
        operators = len(rollouts.vocabulary.operators)
        histograms = np.stack([np.bincount(graph.op, minlength=operators) for graph in rollouts.graphs])
        state, change = training.valid_transitions(torch.from_numpy(histograms.astype(np.float32)))
        self.graph_index = training.graph_index[:, :-1][training.valid]
        self.rule = change.rule
        self.state = _standardised(torch.cat([state.z, state.counts, state.cost[:, None]], dim=-1))
        self.effect = _standardised(torch.cat([change.counts, change.reward[:, None]], dim=-1))

        self.objective = EncoderObjective(
            config.latent,
            len(rollouts.rule_ids),
            self.state.shape[1],
            self.effect.shape[1],
            config.head_width,
        )
        self.parameters = [*encoder.parameters(), *self.objective.parameters()]
        self.optimiser = torch.optim.Adam(self.parameters)

    def run_epoch(self, epoch: int, generator: torch.Generator) -> dict[str, float]:
        """Run one of `encoder_epochs`; returns the mean loss."""
        config = self.config
        self.encoder.train()
        losses = []
        for step in range(config.encoder_steps):
            chosen = torch.randint(len(self.rule), (config.encoder_batch,), generator=generator)
            batch = quotient([self.graphs[i] for i in self.graph_index[chosen]], config.encoder_layers)
            z = self.encoder(batch)
            loss = self.objective(z, self.rule[chosen], self.state[chosen], self.effect[chosen])
            progress = (epoch + step / config.encoder_steps) / config.encoder_epochs
            rate = config.encoder_learning_rate
            descend(loss, self.optimiser, self.parameters, rate, progress, config.max_gradient_norm)
            losses.append(loss.item())
        return {"encoder/loss": sum(losses) / len(losses)}


def _standardised(values: Tensor) -> Tensor:
    """Values (M, D) with mean 0 and deviation 1; a constant column becomes 0."""
    centred = values - values.mean(dim=0)
    deviation = centred.std(dim=0, correction=0)
    return centred / torch.where(deviation > 1e-6, deviation, 1.0)
