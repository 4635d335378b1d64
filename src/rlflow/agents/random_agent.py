"""The random agent that collects what the world model is fitted on."""

from dataclasses import dataclass

import numpy as np

from rlflow.errors import InputError
from rlflow.representation.action_space import ActionSpace


@dataclass(frozen=True)
class RandomAgent:
    """A valid rule at random, then one of its locations, uniformly (paper section 3.3).

    terminate_probability: chance of terminate at each step; certain where nothing matches. concentration:
    None gives every valid rule the same chance, as in the paper; a positive number gives each episode its own
    taste, a Dirichlet draw over the rules, uniform on average. Tastes reach states in which a rule is used
    up, which no uniform walk sees in a bounded episode.
    """

    action_space: ActionSpace
    terminate_probability: float = 0.0
    concentration: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.terminate_probability <= 1:
            raise InputError(f"random agent: terminate_probability {self.terminate_probability} outside 0..1")
        if self.concentration is not None and self.concentration <= 0:
            raise InputError(f"random agent: concentration {self.concentration}; give a positive one or none")

    def draw_taste(self, rng: np.random.Generator) -> np.ndarray:
        """Weights (R,) of the rules, drawn at the start of an episode."""
        rules = self.action_space.num_rules
        if self.concentration is None or rules == 0:
            return np.ones(rules)
        return rng.dirichlet(np.full(rules, self.concentration))

    def act(self, counts: np.ndarray, taste: np.ndarray, rng: np.random.Generator) -> tuple[int, int]:
        """(rule, location) where the rules match counts (R,) times, under the episode's taste (R,)."""
        valid = counts > 0
        if not valid.any() or rng.random() < self.terminate_probability:
            return self.action_space.terminate, 0
        weights = taste * valid
        if weights.sum() <= 0:
            weights = valid.astype(float)
        rule = int(rng.choice(len(counts), p=weights / weights.sum()))
        return rule, int(rng.integers(counts[rule]))
