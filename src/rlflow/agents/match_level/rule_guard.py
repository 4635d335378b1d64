"""The rules that an e-graph admits: those of which an expert likely takes a match somewhere.

With all rules an e-graph of a whole model outgrows every limit, and most of them lead nowhere on the graph at hand. So
the scores that were seen during the climb decide:

    guard = RuleGuard(judge, rules, shares)
    guard.of(graph)                                the judge's scores, of which the guard remembers the most
    guard.admitted(least_probability=0.2, least_share=0.02)

Of a rule that had a match in a graph that was judged, the most that was said of any match counts. Many rules have none
before others were used; of these counts what was seen in lessons (`rule_means.RuleMeans.taken`). Where what is admitted
is not enough, `tolerated` has the rules of lessons of which the judge thinks little here, too.

The invariant: a rule that was neither heard of nor seen in a lesson is not admitted. A user's own rule therefore takes
part in an e-graph only if it has a match where V was asked; greedy search and chains try it everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rlflow.agents.match_level.scorers import Scorer, Scores
from rlflow.ir.graph import Graph
from rlflow.rules.rule import Rule


class RuleGuard:
    """A judge that passes on what another one says, and remembers the most that it said of a match of each rule.

    shares: by the ids of rules, `RuleMeans.taken` of the lessons.
    """

    def __init__(self, judge: Scorer, rules: Sequence[Rule], shares: Mapping[str, float]) -> None:
        self._judge, self._rules, self._shares = judge, rules, shares
        self._most_taken = np.full(len(rules), -np.inf)

    def of(self, graph: Graph) -> Scores:
        """Ask the judge."""
        scores = self._judge.of(graph)
        rules = [location.rule for location, _ in scores.state.matches]
        np.maximum.at(self._most_taken, rules, scores.taken)
        return scores

    def admitted(self, least_probability: float, least_share: float) -> list[Rule]:
        """Return the rules that were said to be taken with this probability, or, unheard of, have this share."""
        is_unheard = np.isneginf(self._most_taken)
        return self._rules_of(self._is_liked(least_probability) | (is_unheard & self._has_share(least_share)))

    def tolerated(self, least_probability: float, least_share: float) -> list[Rule]:
        """Return those rules, and with them the ones of this share that the judge spoke against."""
        return self._rules_of(self._is_liked(least_probability) | self._has_share(least_share))

    def _is_liked(self, least_probability: float) -> np.ndarray:
        return self._most_taken >= np.log(least_probability) - np.log1p(-least_probability)

    def _has_share(self, least_share: float) -> np.ndarray:
        return np.array([self._shares.get(rule.id, 0.0) >= least_share for rule in self._rules], bool)

    def _rules_of(self, chosen: np.ndarray) -> list[Rule]:
        return [rule for rule, is_chosen in zip(self._rules, chosen, strict=True) if is_chosen]
