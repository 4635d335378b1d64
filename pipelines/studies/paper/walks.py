"""Random walks from a graph: what Table 1 says of it, and how the costs of its versions go together (section 4.3).

A walk goes on from the graph by random rewrites, and prices every version that it meets. The correlations are
Pearson's, between what the versions cost: runtime by the cost model, floating-point operations, bytes moved and
launches. One that does not vary has none, and is left out.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass

import numpy as np

from rlflow.cost.base import Cost
from rlflow.ir.graph import Graph
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.show.layers import unique_layers
from studies.paper.rows import Row
from studies.subject import Subject

COSTS = ("runtime_ms", "flops", "bytes_moved", "launches")


@dataclass(frozen=True)
class WalkCell:
    """A walk of so many rewrites, in episodes of `episode_steps`, each from the original again."""

    subject: Subject
    seed: int
    steps: int
    episode_steps: int

    def run(self) -> dict[str, Row]:
        graph, prices, rules = self.subject.graph(), self.subject.prices(), library.load()
        rewriter, rng = Rewriter(rules.rules), np.random.default_rng(self.seed)
        counts = rewriter.matches(graph).counts
        costs, taken_s, now = [prices.cost(graph)], 0.0, graph
        for number in range(self.steps):
            before = graph if number % self.episode_steps == 0 else now
            started = time.perf_counter()
            now = random_rewrite(before, rewriter, rng)
            costs.append(prices.cost(now))
            taken_s += time.perf_counter() - started
        found = unique_layers(graph)
        figures = {
            "layers": float(sum(layer.count for layer in found)),
            "unique_layers": float(len(found)),
            "rules_that_match": float(sum(count > 0 for count in counts)),
            "matches": float(sum(counts)),
            "graphs": float(len(costs)),
            "step_ms": 1000.0 * taken_s / self.steps,
        }
        return {"walk": Row(figures | correlations(costs))}


def random_rewrite(graph: Graph, rewriter: Rewriter, rng: np.random.Generator) -> Graph:
    """One rewrite, uniform over the rules that match and then over the rule's matches; the graph where none does."""
    matches = rewriter.matches(graph)
    valid = [rule for rule, count in enumerate(matches.counts) if count]
    if not valid:
        return graph
    rule = valid[int(rng.integers(len(valid)))]
    return rewriter.apply(graph, matches[rule][int(rng.integers(matches.counts[rule]))])


def correlations(costs: list[Cost]) -> dict[str, float]:
    """Pearson's correlation of each two of `COSTS` over graphs; of those that vary."""
    table = {name: np.array([getattr(cost, name) for cost in costs], float) for name in COSTS}
    varied = [name for name in COSTS if np.ptp(table[name]) > 0]
    return {
        f"correlation_{one}_{other}": float(np.corrcoef(table[one], table[other])[0, 1])
        for one, other in itertools.combinations(varied, 2)
    }
