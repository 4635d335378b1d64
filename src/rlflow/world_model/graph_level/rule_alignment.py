"""Rules matched by their stable ids between a model and an environment that numbers them otherwise."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RuleAlignment:
    """A map of counts and actions between the rules that a model was fitted on and those of an environment.

    A rule switched off in the environment never matches, so it is masked; a rule that the model has never seen
    is masked too, with a warning. Nothing shifts.
    """

    model_rules: tuple[str, ...]
    environment_rules: tuple[str, ...]
    environment_index: tuple[int, ...]  # per rule of the model, -1 where it is switched off

    @classmethod
    def of(cls, model_rules: Sequence[str], environment_rules: Sequence[str]) -> "RuleAlignment":
        """Match the rules by id, warning of those that the model has never seen."""
        unseen = [rule for rule in environment_rules if rule not in model_rules]
        if unseen:
            log.warning("rules that the world model has never seen are masked: %s", ", ".join(unseen))
        place = {rule: index for index, rule in enumerate(environment_rules)}
        index = tuple(place.get(rule, -1) for rule in model_rules)
        return cls(tuple(model_rules), tuple(environment_rules), index)

    def counts(self, environment_counts: np.ndarray) -> np.ndarray:
        """Turn counts (R',) of the environment's rules into counts (R,) of the model's."""
        padded = np.append(environment_counts, 0)
        return padded[list(self.environment_index)]

    def action(self, rule: int, location: int) -> tuple[int, int]:
        """Turn the model's (rule, location) into the environment's."""
        if rule == len(self.model_rules):
            return len(self.environment_rules), 0
        return self.environment_index[rule], location
