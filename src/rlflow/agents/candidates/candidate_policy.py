"""X-RLflow's policy: graph attention over the current graph and its candidates, a score for each, one for stopping.

    edges, then nodes by their edges          EdgeAndNodeUpdate
    nodes by their neighbours, L times        GraphAttention
    each graph by the sum of its nodes        the global update; a candidate's sum is the current graph's and the change
    logits and value                          the heads of `agents.pointing`, from pairs of current graph and candidate

Nodes that a candidate shares with the current graph are encoded once (`representation.candidate_arrays`).

The invariant: candidates in another order have the same logits in that order, and a graph is read alike whatever else
is in the batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from stable_baselines3.common.type_aliases import Schedule
from torch import Tensor, nn

from rlflow.agents.candidates.candidate_config import CandidateNetworkConfig
from rlflow.agents.candidates.memory import CandidateBatch, CandidateMemory
from rlflow.agents.pointing import PointerDistribution, PointingPolicy, Reading
from rlflow.nn import pooling
from rlflow.nn.graph_attention import EdgeAndNodeUpdate, GraphAttention
from rlflow.nn.message_passing import scatter_sum
from rlflow.nn.mlp import mlp


class Encoded(NamedTuple):
    """Sums over the nodes of the current graphs (S, W), and the changes of these by the candidates (C, W).

    Both are shares of the number of nodes that the current graph has, as `nodes` (S, 1) says.
    """

    whole: Tensor
    change: Tensor
    nodes: Tensor


class GraphEncoder(nn.Module):
    """Reads the disjoint graph of a batch."""

    def __init__(self, operators: int, features: int, edge_features: int, config: CandidateNetworkConfig) -> None:
        super().__init__()
        width = config.width
        self.operator = nn.Embedding(operators, width)
        self.first = EdgeAndNodeUpdate(width + features, edge_features, width)
        self.attention = nn.ModuleList(
            [GraphAttention(width, config.attention_heads) for _ in range(config.attention_layers)]
        )
        self.last = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width), nn.SiLU())

    def forward(self, batch: CandidateBatch) -> Encoded:
        """Encode the nodes, and sum them up graph by graph."""
        own = torch.cat([self.operator(batch.op), batch.features], dim=-1)
        nodes, kinds = self.first(own, batch.kinds, batch.kind, batch.messages[:, 1])
        for layer in self.attention:
            nodes = layer(nodes, kinds, batch.kind, batch.messages)
        nodes = self.last(nodes)

        states, candidates = len(batch.cost), len(batch.row)
        whole = scatter_sum(nodes[batch.current], batch.state, states)
        added = scatter_sum(nodes[batch.plus[:, 1]], batch.plus[:, 0], candidates)
        gone = scatter_sum(nodes[batch.minus[:, 1]], batch.minus[:, 0], candidates)
        number = torch.bincount(batch.state, minlength=states)[:, None]
        return Encoded(whole, added - gone, number)


class CandidatePolicy(PointingPolicy):
    """Actor and critic over names of states in a memory; action K, beyond the last candidate, is terminate."""

    def __init__(
        self,
        observation_space: Any,
        action_space: Any,
        lr_schedule: Schedule,
        *,
        memory: CandidateMemory,
        config: CandidateNetworkConfig,
        **kwargs: Any,
    ) -> None:
        self.memory, self.config = memory, config
        self.max_candidates = int(action_space.n) - 1
        super().__init__(observation_space, action_space, lr_schedule, net_arch=[], **kwargs)

    def build_networks(self) -> None:
        """Make the encoder, the update of graphs, the network of pairs and the heads."""
        config, writer = self.config, self.memory.writer
        width = config.width
        operators = len(writer.vocabulary.operators)
        self.encoder = GraphEncoder(operators, writer.node_width - 1, writer.edge_width + 1, config)
        self.graph = nn.Sequential(nn.Linear(width + 1, width), nn.LayerNorm(width), nn.SiLU())
        # candidates differ little, and without the norm the scores would learn their differences many times slower
        self.pair = nn.Sequential(mlp([2 * width + 1, width, width]), nn.LayerNorm(width), nn.Tanh())
        self.greedy_weight = nn.Parameter(torch.tensor(config.greedy_weight))
        self.build_heads(width, 3 * width + 1, config.terminate_bias)

    def distribution(self, observation: Tensor) -> PointerDistribution:
        """The policy at names (B, 1) of states."""
        return self.distribution_and_values(observation)[0]

    def predict_values(self, obs: Any) -> Tensor:
        """Values (B, 1)."""
        return self.distribution_and_values(obs)[1]

    def distribution_and_values(self, observation: Tensor) -> tuple[PointerDistribution, Tensor]:
        """Both, where each distinct state is read once."""
        batch, place = self.memory.batch(observation, self.max_candidates)
        reading = self.read_batch(batch)
        return PointerDistribution(self.pointer(reading).log_probability[place]), self.critic(reading.context)[place]

    def read(self, observation: Tensor) -> Reading:
        """Read the distinct states of a batch of names, in ascending order."""
        return self.read_batch(self.memory.batch(observation, self.max_candidates)[0])

    def read_batch(self, batch: CandidateBatch) -> Reading:
        """Read states that were put together."""
        encoded, states = self.encoder(batch), len(batch.cost)
        graph = self.graph(torch.cat([encoded.whole / encoded.nodes, batch.cost], dim=-1))
        after = (encoded.whole[batch.row] + encoded.change) / encoded.nodes[batch.row]
        candidate = self.graph(torch.cat([after, batch.cost[batch.row]], dim=-1))
        pairs = self.pair(torch.cat([candidate, encoded.change, batch.saving[:, None]], dim=-1))
        pooled = (pooling.mean(pairs, batch.row, states), pooling.largest(pairs, batch.row, states))
        context = torch.cat([graph, *pooled, batch.cost], dim=-1)
        return Reading(pairs, batch.present, batch.row, context, prior=self.greedy_weight * batch.gain)
