"""A substitution environment with a known optimum: rewriting of tokens in a layered graph.

Layers of operators, rules that replace one operator by another (or merge two), each with its gain in percent of the
start's cost. There are profitable rules, a harmful one, one that only enables another, ones that undo, and one that
does nothing for ever; the optimum is the sum of all gains. The match order is topological, as in the real one.
"""

from dataclasses import dataclass, field

import numpy as np

from rlflow.agents.random_agent import RandomAgent
from rlflow.representation.action_space import ActionSpace
from rlflow.representation.graph_arrays import GraphArrays
from rlflow.representation.rollouts import Episode, Rollouts
from rlflow.representation.vocabulary import PADDING, Vocabulary


@dataclass(frozen=True)
class TokenRule:
    """Replaces operator `before` by `after`; with `merge`, two neighbours `before` by one `after`."""

    name: str
    before: str
    after: str
    gain: float
    merge: bool = False


OPERATORS = ("A", "A'", "B", "B'", "C", "C'", "D", "D'", "E", "F", "F'", "G", "G'", "H", "HH", "X", "X'", "-")
RULES = (
    TokenRule("big", "A", "A'", 0.3),
    TokenRule("undo-big", "A'", "A", -0.3),
    TokenRule("small", "B", "B'", 0.1),
    TokenRule("harm", "C", "C'", -0.4),
    TokenRule("undo-harm", "C'", "C", 0.4),
    TokenRule("enable", "D", "D'", 0.0),
    TokenRule("enabled", "D'", "E", 0.8),
    TokenRule("tiny", "F", "F'", 0.02),
    TokenRule("ruin", "G", "G'", -1.0),
    TokenRule("merge", "H", "HH", 0.5, merge=True),
    TokenRule("idle", "X", "X'", 0.0),
    TokenRule("idle-back", "X'", "X", 0.0),
)
# a run of three H matches twice and is used up by one merge, a run of two matches once: the location decides
LAYER = ("A", "-", "A", "B", "-", "C", "D", "H", "H", "-", "F", "G", "H", "H", "H", "-", "X", "-")


@dataclass
class TokenEnv:
    """`reset`, `counts`, `step`, `arrays`: what a rollout needs of an environment."""

    layers: int = 12
    max_locations: int = 50
    layer: tuple[str, ...] = LAYER
    rules: tuple[TokenRule, ...] = RULES
    tokens: list[tuple[int, str]] = field(default_factory=list)
    cost: float = 100.0

    @property
    def action_space(self) -> ActionSpace:
        """Rules and locations."""
        return ActionSpace(len(self.rules), self.max_locations)

    @property
    def optimum(self) -> float:
        """Largest total reward in percent, found by greedy search: all gains are independent."""
        other = TokenEnv(self.layers, self.max_locations, self.layer, self.rules)
        other.reset()
        lowest = other.cost
        for _ in range(1000):
            counts = other.counts()
            useful = [
                i for i, rule in enumerate(self.rules) if counts[i] and rule.gain >= 0 and "idle" not in rule.name
            ]
            if not useful:
                break
            other.step(useful[0], 0)
            lowest = min(lowest, other.cost)
        return 100.0 - lowest

    def reset(self) -> None:
        """The start graph."""
        self.tokens = [(layer, token) for layer in range(self.layers) for token in self.layer]
        self.cost = 100.0

    def matches(self, rule: TokenRule) -> list[int]:
        """Positions at which the rule matches."""
        tokens = self.tokens
        if rule.merge:
            pairs = range(len(tokens) - 1)
            return [i for i in pairs if tokens[i] == tokens[i + 1] and tokens[i][1] == rule.before]
        return [i for i, (_, token) in enumerate(tokens) if token == rule.before]

    def counts(self) -> np.ndarray:
        """Matches per rule, at most L."""
        return np.array([min(len(self.matches(rule)), self.max_locations) for rule in self.rules])

    def step(self, rule: int, location: int) -> float:
        """Apply; the reward is the drop in cost, which varies by up to a tenth with the layer."""
        chosen = self.rules[rule]
        place = self.matches(chosen)[location]
        layer = self.tokens[place][0]
        self.tokens[place : place + (2 if chosen.merge else 1)] = [(layer, chosen.after)]
        reward = chosen.gain * (1 + 0.1 * np.cos(layer))
        self.cost -= reward
        return reward

    def arrays(self) -> GraphArrays:
        """A chain with a residual edge over every layer."""
        op = np.array([OPERATORS.index(token) + 1 for _, token in self.tokens], dtype=np.int64)
        layer = np.array([layer for layer, _ in self.tokens])
        first = np.array([int(np.argmax(layer == k)) for k in range(self.layers)])
        chain = np.stack([np.arange(len(op) - 1), np.arange(1, len(op))], axis=1)
        skips = np.stack([first[:-1], first[1:]], axis=1)
        features = np.stack([op % 2, op / 10.0], axis=1).astype(np.float32)
        return GraphArrays(op, features, np.concatenate([chain, skips]).astype(np.int64))

    def key(self) -> tuple[tuple[int, str], ...]:
        """Identity of the graph."""
        return tuple(self.tokens)


def collect(env: TokenEnv, agent: RandomAgent, episodes: int, max_steps: int, seed: int) -> Rollouts:
    """Rollouts of a random agent."""
    rng = np.random.default_rng(seed)
    graphs: dict[tuple[tuple[int, str], ...], int] = {}
    arrays: list[GraphArrays] = []

    def visit() -> int:
        if env.key() not in graphs:
            graphs[env.key()] = len(arrays)
            arrays.append(env.arrays())
        return graphs[env.key()]

    collected = []
    for _ in range(episodes):
        env.reset()
        rule_weights = agent.draw_rule_weights(rng)
        index, counts, cost = [visit()], [env.counts()], [env.cost]
        actions, rewards = [], []
        while len(actions) < max_steps:
            rule, location = agent.act(counts[-1], rule_weights, rng)
            actions.append((rule, location))
            rewards.append(0.0 if rule == env.action_space.terminate else env.step(rule, location))
            index.append(visit())
            counts.append(env.counts())
            cost.append(env.cost)
            if rule == env.action_space.terminate:
                break
        collected.append(
            Episode(
                graph_index=np.array(index),
                action=np.array(actions),
                reward=np.array(rewards, dtype=np.float32),
                terminated=np.array([rule == env.action_space.terminate for rule, _ in actions]),
                counts=np.stack(counts),
                cost=np.array(cost, dtype=np.float32),
                memory_saved=np.full(len(actions), np.nan, np.float32),
                latency_saved=np.full(len(actions), np.nan, np.float32),
            )
        )
    return Rollouts(
        graphs=tuple(arrays),
        episodes=tuple(collected),
        action_space=env.action_space,
        rule_ids=tuple(rule.name for rule in env.rules),
        vocabulary=Vocabulary((PADDING, *OPERATORS), ("parity", "tenth")),
        library_hash="synthetic",
    )
