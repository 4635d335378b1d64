"""The action space (rule, location), whose whole mask follows from the match counts."""

from dataclasses import dataclass

import numpy as np

from rlflow.errors import InputError


@dataclass(frozen=True)
class ActionSpace:
    """The space of actions (rule, location); rule index `terminate` ends the episode (docs/spaces.md).

    num_rules: R, rules 0 .. R-1. max_locations: L, valid locations of a rule are the prefix 0 .. count-1.
    """

    num_rules: int
    max_locations: int

    def __post_init__(self) -> None:
        if self.num_rules < 0 or self.max_locations < 1:
            raise InputError(
                f"action space: {self.num_rules} rules and {self.max_locations} locations; "
                "give at least 0 rules and 1 location"
            )

    @property
    def terminate(self) -> int:
        """Index of the terminate action, always valid, with location 0."""
        return self.num_rules

    def rule_mask(self, counts: np.ndarray) -> np.ndarray:
        """Valid rules: counts (..., R) -> (..., R + 1) bool; terminate is always valid."""
        always = np.ones((*counts.shape[:-1], 1), dtype=bool)
        return np.concatenate([counts > 0, always], axis=-1)

    def location_mask(self, counts: np.ndarray) -> np.ndarray:
        """Valid locations: counts (..., R) -> (..., R, L) bool, each row a prefix."""
        return np.arange(self.max_locations) < counts[..., None]

    def is_valid(self, counts: np.ndarray, rule: int, location: int) -> bool:
        """Return True if (rule, location) may be taken when the rules match counts (R,) times."""
        if rule == self.terminate:
            return location == 0
        return 0 <= rule < self.num_rules and 0 <= location < min(int(counts[rule]), self.max_locations)
