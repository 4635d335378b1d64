"""The average of what experts do with the matches of a rule, without a network.

    means = RuleMeans.of(rollouts)
    means.taken["linear-0bf8bb9e09aa"]                 the share of its matches that experts took, weighted
    means.save(folder), RuleMeans.load(folder)

It is what V is compared with (`baselines`), and says of rules that V has not met on a graph if an e-graph should admit
them (`rule_guard`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from rlflow.described import Described
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.world_model.match_level.diagnostics import rule_means
from rlflow.world_model.match_level.encoder_fit import edit_operators, token_labels

_FILE = Described("rule_means", "means of rules", "make them with `RuleMeans.of`", indent=1)


@dataclass(frozen=True)
class RuleMeans:
    """The average of what experts do with the matches of each rule, by its id: as V says it, the same of each match.

    taken: the share of matches that they take, of which one that leads to more weighs more, as it does for V; gain: the
    mean logarithm of what that leads to; saving: what a match saves, in units of prices. Rules that lessons do not show
    are not there.
    """

    taken: Mapping[str, float]
    gain: Mapping[str, float]
    saving: Mapping[str, float]

    @classmethod
    def of(cls, rollouts: TokenRollouts) -> RuleMeans:
        """Average what V would learn from."""
        operators = edit_operators(rollouts.tokens, len(rollouts.vocabulary.operators))
        labels = token_labels(rollouts.episodes, operators)
        rules = [rollouts.rule_of[place] for place in labels.place.tolist()]
        return cls(
            _weighted_means(rules, labels.taken.numpy(), labels.taken_weight.numpy()),
            _weighted_means(rules, labels.gain.numpy(), labels.gain_weight.numpy()),
            rule_means(rollouts, rollouts.episodes),
        )

    @classmethod
    def load(cls, folder: Path) -> RuleMeans:
        """Read what `save` wrote. `InputError` if that is not there."""
        with _FILE.reading(folder):
            return cls(**_FILE.description(folder))

    def save(self, folder: Path) -> None:
        """Write them beside a policy."""
        _FILE.describe(asdict(self), folder)


def _weighted_means(rules: list[str], values: np.ndarray, weights: np.ndarray) -> dict[str, float]:
    """Return the weighted mean of each rule that has any weight."""
    total, weight = defaultdict[str, float](float), defaultdict[str, float](float)
    for rule, value, of_value in zip(rules, values.tolist(), weights.tolist(), strict=True):
        total[rule] += value * of_value
        weight[rule] += of_value
    return {rule: total[rule] / weight[rule] for rule in sorted(weight) if weight[rule] > 0}
