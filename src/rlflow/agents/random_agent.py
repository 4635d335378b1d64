"""The random agent, whose episodes the world model is fitted on."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rlflow.errors import InputError
from rlflow.representation.action_space import ActionSpace
from rlflow.representation.rollouts import Episode


@dataclass(frozen=True)
class RandomAgent:
    """An agent that draws a valid rule, then one of its locations, uniformly (paper section 3.3).

    terminate_probability: the chance of terminate at each step; where nothing matches, terminate is certain.
    concentration: None gives every valid rule the same chance, as in the paper. A positive number gives each episode
    weights of its own over the rules, a Dirichlet draw, uniform on average: an episode that prefers a rule reaches
    states in which that rule is used up, which no uniform walk sees within a bounded episode.
    """

    action_space: ActionSpace
    terminate_probability: float = 0.0
    concentration: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.terminate_probability <= 1:
            raise InputError(
                f"random agent: terminate_probability is {self.terminate_probability}; give one from 0 to 1"
            )
        if self.concentration is not None and self.concentration <= 0:
            raise InputError(f"random agent: concentration is {self.concentration}; give a positive number or null")

    def draw_rule_weights(self, rng: np.random.Generator) -> np.ndarray:
        """Draw the weights (R,) of the rules for one episode."""
        rules = self.action_space.num_rules
        if self.concentration is None or rules == 0:
            return np.ones(rules)
        return rng.dirichlet(np.full(rules, self.concentration))

    def act(self, counts: np.ndarray, rule_weights: np.ndarray, rng: np.random.Generator) -> tuple[int, int]:
        """Draw (rule, location), given the rules' match counts (R,) and the episode's rule_weights (R,)."""
        valid = counts > 0
        if not valid.any() or rng.random() < self.terminate_probability:
            return self.action_space.terminate, 0

        weights = rule_weights * valid
        if weights.sum() <= 0:  # a Dirichlet draw may give all valid rules a weight that rounds to 0
            weights = valid.astype(float)

        rule = int(rng.choice(len(counts), p=weights / weights.sum()))
        return rule, int(rng.integers(counts[rule]))


Observed = tuple[int, np.ndarray, float]
"""The place of the graph among those of the rollouts, the matches of each rule (R,), and the cost in percent."""


class Stepped(NamedTuple):
    """The outcome of an action, as `Episode` has it: what it earned, the ends, and what it saved beside, if known."""

    reward: float
    terminated: bool
    truncated: bool
    memory_saved: float = math.nan
    latency_saved: float = math.nan


def play(
    agent: RandomAgent,
    rule_weights: np.ndarray,
    observe: Callable[[], Observed],
    step: Callable[[tuple[int, int]], Stepped],
    rng: np.random.Generator,
) -> Episode:
    """Play an episode from where its environment stands, and write it down. step(action): takes it."""
    observed, actions, taken = [observe()], list[tuple[int, int]](), list[Stepped]()
    while not (taken and (taken[-1].terminated or taken[-1].truncated)):
        action = agent.act(observed[-1][1], rule_weights, rng)
        taken.append(step(action))
        actions.append(action)
        observed.append(observe())
    graph_index, counts, cost = zip(*observed, strict=True)
    return Episode(
        graph_index=np.array(graph_index, dtype=np.int64),
        action=np.array(actions, dtype=np.int64),
        reward=np.array([one.reward for one in taken], dtype=np.float32),
        terminated=np.array([one.terminated for one in taken], dtype=np.bool_),
        counts=np.array(counts, dtype=np.int64),
        cost=np.array(cost, dtype=np.float32),
        memory_saved=np.array([one.memory_saved for one in taken], dtype=np.float32),
        latency_saved=np.array([one.latency_saved for one in taken], dtype=np.float32),
    )
