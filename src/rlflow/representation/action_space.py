"""The action space (rule, location), whose whole mask follows from the match counts."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from rlflow.errors import InputError


@dataclass(frozen=True, eq=False)
class Locations(Collection[tuple[int, int]]):
    """The valid (rule, location): of each rule the first `counts` (R,) of its locations."""

    counts: np.ndarray

    def __contains__(self, choice: object) -> bool:
        if not isinstance(choice, tuple):
            return False
        rule, location = choice
        return 0 <= rule < len(self.counts) and 0 <= location < int(self.counts[rule])

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return ((rule, place) for rule, count in enumerate(self.counts.tolist()) for place in range(count))

    def __len__(self) -> int:
        return int(self.counts.sum())


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
        return (rule, location) in Locations(np.minimum(counts, self.max_locations))
