"""M: a recurrent mixture density network over the changes that one rewrite makes (Ha and Schmidhuber 2018).

From the state (z, match counts, cost), an action (rule, location) and its memory h, M predicts what the action changes:
z by a mixture of Gaussians, the reward with its uncertainty, the cost, the end of the episode, and for each rule how
many of its matches appear or vanish. A state with counts (3, 0) and an action that is predicted to change them by
(-1, +2) leads to (2, 2): the masks of the next step, which nobody predicts separately.

The invariant: `step` and `sequence` give the same numbers for the same steps, and neither keeps anything on the module.
The recurrent state goes in and comes out.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rlflow.nn.mixture import GaussianMixture, MixtureHead
from rlflow.nn.mlp import mlp
from rlflow.world_model.graph_level.graph_level_config import GraphLevelModelConfig

LOG_SIGMA_RANGE = (-4.0, 2.0)  # of a reward, in units of its rule's spread
SPOT_SPREAD = 0.1  # of the initial embedding of a (rule, location): it begins as a small correction
PRIOR = 0.1  # of an observation: what a rule has never done stays possible
Hidden = tuple[Tensor, Tensor]  # output h and cell c of the LSTM, each (B, H)


@dataclass(frozen=True)
class State:
    """A state as M sees it: z (..., Z), counts (..., R) float, cost (...) in percent of the start."""

    z: Tensor
    counts: Tensor
    cost: Tensor


@dataclass(frozen=True)
class Prediction:
    """M's expectation of one step; every change is from the present state, so that "no change" is the baseline.

    latent_change: mixture over (..., Z). reward, cost_change (...) in percent. reward_sigma (...): how far the reward
    may be off, since what a rule does at a location depends on the surroundings, which z only sums up.
    terminated_logit (...). count_change_logits (..., R, 2 D + 1): of the changes -D .. D. The rule mask and the
    location masks follow from the counts: a rule is valid where it matches, its locations are a prefix.
    """

    latent_change: GaussianMixture
    reward: Tensor
    reward_sigma: Tensor
    terminated_logit: Tensor
    count_change_logits: Tensor
    cost_change: Tensor


@dataclass(frozen=True)
class Change:
    """The changes that one step really made.

    latent (..., Z), reward, terminated, cost (...), counts (..., R), and the rule (...) that was applied.
    """

    latent: Tensor
    reward: Tensor
    terminated: Tensor
    counts: Tensor
    cost: Tensor
    rule: Tensor


class MDNRNN(nn.Module):
    """LSTM over [z, counts, cost, action], then heads.

    An action enters as an embedding of its rule, of its location and of the pair, and as its place among the rule's
    matches. Matches come in the order of the graph, so the third match of a rule is mostly the same spot of the graph,
    and the embedding of the pair can remember what the rule does there, though z only sums the graph up.

    Rewards and cost changes are predicted as deviations from the mean of the applied rule, in units of its spread: a
    rule does nearly the same wherever it is applied, and this holds far from the visited states too. Inputs are clamped
    to the range that the rollouts cover, so M never extrapolates along a single input.
    """

    state_low: Tensor
    state_high: Tensor
    latent_change_scale: Tensor
    reward_mean: Tensor
    reward_scale: Tensor
    reward_low: Tensor
    reward_high: Tensor
    cost_change_mean: Tensor
    cost_change_scale: Tensor

    def __init__(self, num_rules: int, max_locations: int, config: GraphLevelModelConfig) -> None:
        super().__init__()
        self.num_rules, self.max_locations = num_rules, max_locations
        self.latent, self.hidden = config.latent, config.hidden
        self.max_change = config.max_count_change
        self.separate_reward = config.reward_head == "separate"

        inputs = config.latent + 2 * num_rules + 1
        width = config.head_width

        self.rule = nn.Embedding(num_rules + 1, config.rule_embedding)
        self.location = nn.Embedding(max_locations, config.location_embedding)
        self.spot = nn.Embedding((num_rules + 1) * max_locations, config.location_embedding)
        nn.init.normal_(self.spot.weight, std=SPOT_SPREAD)

        features = inputs + config.rule_embedding + 2 * config.location_embedding + 2
        self.lstm = nn.LSTMCell(features, config.hidden)
        self.trunk = nn.Sequential(nn.Linear(features + config.hidden, width), nn.SiLU())

        self.latent_head = MixtureHead(width, config.mixtures, config.latent)
        self.reward_head = mlp([features if self.separate_reward else width, width, width, 2])
        self.scalar_heads = nn.Linear(width, 2)
        changes = num_rules * (2 * self.max_change + 1)
        self.count_head = nn.Linear(width, changes)
        # log-odds of what a rule does wherever it is applied; the heads learn the exceptions
        self.count_table = nn.Embedding(num_rules + 1, changes)
        self.terminated_table = nn.Embedding(num_rules + 1, 1)
        for table in (self.count_table, self.terminated_table):
            nn.init.zeros_(table.weight)

        # Not learned by gradient: set once by `set_scale`, stored with the weights.
        self.register_buffer("state_low", torch.full((inputs,), -torch.inf))
        self.register_buffer("state_high", torch.full((inputs,), torch.inf))
        self.register_buffer("latent_change_scale", torch.ones(config.latent))
        for name, value in (
            ("reward_mean", 0.0),
            ("reward_scale", 1.0),
            ("reward_low", 0.0),
            ("reward_high", 0.0),
            ("cost_change_mean", 0.0),
            ("cost_change_scale", 1.0),
        ):
            self.register_buffer(name, torch.full((num_rules + 1,), value))

    @torch.no_grad()
    def set_scale(self, state: State, change: Change) -> None:
        """Take ranges, spreads and what each rule usually does from M transitions: state, change (M, ...)."""
        inputs = self.state_inputs(state)
        self.state_low.copy_(inputs.amin(dim=0))
        self.state_high.copy_(inputs.amax(dim=0))
        spread = change.latent.std(dim=0, correction=0)
        self.latent_change_scale.copy_(spread.clamp_min(1e-3))

        # a rule that always does the same must not turn rounding noise into signal
        reward_floor = max(0.05 * change.reward.std(correction=0).item(), 1e-6)
        cost_floor = max(0.05 * change.cost.std(correction=0).item(), 1e-6)

        for rule in sorted(set(change.rule.tolist())):
            own = change.rule == rule
            reward, cost = change.reward[own], change.cost[own]
            self.reward_mean[rule], self.cost_change_mean[rule] = reward.mean(), cost.mean()
            self.reward_scale[rule] = reward.std(correction=0).clamp_min(reward_floor)
            self.cost_change_scale[rule] = cost.std(correction=0).clamp_min(cost_floor)
            self.reward_low[rule], self.reward_high[rule] = reward.min(), reward.max()

            seen = nn.functional.one_hot(self.change_index(change.counts[own]), 2 * self.max_change + 1)
            self.count_table.weight[rule] = torch.log(seen.sum(dim=0) + PRIOR).flatten()
            ended = change.terminated[own].sum()
            self.terminated_table.weight[rule] = torch.log((ended + PRIOR) / (own.sum() - ended + PRIOR))

    def change_index(self, counts: Tensor) -> Tensor:
        """Changes of the counts (..., R) -> index 0 .. 2 D into their distribution; larger ones are clipped."""
        return counts.clamp(-self.max_change, self.max_change).long() + self.max_change

    def state_inputs(self, state: State) -> Tensor:
        """The state as M reads it, (..., Z + 2 R + 1), before it is clamped to the visited range."""
        scale = torch.log1p(torch.tensor(float(self.max_locations)))
        counts = torch.log1p(state.counts) / scale
        cost = state.cost[..., None] / 100.0 - 1.0
        return torch.cat([state.z, counts, (state.counts > 0).float(), cost], dim=-1)

    def initial_hidden(self, batch: int) -> Hidden:
        """Zero state, at the start of an episode."""
        zeros = self.rule.weight.new_zeros(batch, self.hidden)
        return zeros, zeros

    def step(
        self, state: State, action: Tensor, hidden: Hidden, *, reset: Tensor | None = None
    ) -> tuple[Prediction, Hidden]:
        """One transition of a batch: state (B, ...), action (B, 2) int64.

        reset (B,) bool: where true, the recurrent state is zeroed before use.
        """
        inputs = self._inputs(state, action)
        hidden = self._recur(inputs, hidden, reset)
        return self._predict(inputs, hidden[0], action[..., 0]), hidden

    def sequence(
        self, states: State, actions: Tensor, hidden: Hidden, *, reset: Tensor | None = None
    ) -> tuple[Prediction, Hidden, Tensor]:
        """T transitions with known states (B, T, ...), actions (B, T, 2), reset (B, T).

        Returns the predictions (B, T, ...), the last recurrent state and all of them (B, T, 2, H).
        """
        inputs = self._inputs(states, actions)
        trace = []
        for time in range(inputs.shape[1]):
            hidden = self._recur(inputs[:, time], hidden, None if reset is None else reset[:, time])
            trace.append(torch.stack(hidden, dim=1))
        hiddens = torch.stack(trace, dim=1)
        return self._predict(inputs, hiddens[:, :, 0], actions[..., 0]), hidden, hiddens

    def recall(self, states: State, actions: Tensor) -> Hidden:
        """The recurrent state before each step of episodes from their start: (B, T, H), zero at the first."""
        _, _, after = self.sequence(states, actions, self.initial_hidden(len(actions)))
        before = torch.cat([torch.zeros_like(after[:, :1]), after[:, :-1]], dim=1)
        return before[:, :, 0], before[:, :, 1]

    def _inputs(self, state: State, action: Tensor) -> Tensor:
        """State and action as features, (..., features)."""
        known = torch.clamp(self.state_inputs(state), self.state_low, self.state_high)
        rule, location = action[..., 0], action[..., 1]

        # the location's place among the rule's matches, and among all locations; terminate has one match
        padded = nn.functional.pad(state.counts, (0, 1), value=1.0)
        matches = padded.gather(-1, rule[..., None]).squeeze(-1).clamp_min(1.0)
        place = torch.stack([(location + 0.5) / matches, location / self.max_locations], dim=-1)

        spot = self.spot(rule * self.max_locations + location)
        return torch.cat([known, self.rule(rule), self.location(location), spot, place], dim=-1)

    def _recur(self, inputs: Tensor, hidden: Hidden, reset: Tensor | None) -> Hidden:
        if reset is not None:
            keep = (~reset).float()[:, None]
            hidden = (hidden[0] * keep, hidden[1] * keep)
        return self.lstm(inputs, hidden)  # type: ignore[no-any-return]

    def features(self, state: State, action: Tensor, hidden: Hidden) -> Tensor:
        """Return what the heads of `step` read, (B, W)."""
        inputs = self._inputs(state, action)
        return self._features(inputs, self._recur(inputs, hidden, None)[0])

    def _features(self, inputs: Tensor, hidden: Tensor) -> Tensor:
        return self.trunk(torch.cat([inputs, hidden], dim=-1))  # type: ignore[no-any-return]

    def _predict(self, inputs: Tensor, hidden: Tensor, rule: Tensor) -> Prediction:
        features = self._features(inputs, hidden)
        mixture = self.latent_head(features)
        reward, log_sigma = self.reward_head(inputs if self.separate_reward else features).unbind(dim=-1)
        terminated, cost = self.scalar_heads(features).unbind(dim=-1)
        changes = self.count_head(features) + self.count_table(rule)
        return Prediction(
            latent_change=GaussianMixture(
                mixture.logits,
                mixture.mean * self.latent_change_scale,
                mixture.log_sigma + self.latent_change_scale.log(),
            ),
            reward=self.reward_mean[rule] + self.reward_scale[rule] * reward,
            reward_sigma=self.reward_scale[rule] * log_sigma.clamp(*LOG_SIGMA_RANGE).exp(),
            terminated_logit=terminated + self.terminated_table(rule).squeeze(-1),
            count_change_logits=changes.unflatten(-1, (self.num_rules, 2 * self.max_change + 1)),
            cost_change=self.cost_change_mean[rule] + self.cost_change_scale[rule] * cost,
        )
