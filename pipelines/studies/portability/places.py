"""Places at which rules fire, each as a small graph of its own before the rewrite and after it.

    best = best_places(graph, library.load().rules, wanted, walks, cost_model, seed=0)
    best[rule.id].before, best[rule.id].after

A part is what a rule replaces with its direct neighbours, since a runtime may fuse what is new with these. Its weights
are arbitrary, but for small ones. Parts that are alike are seen once.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rlflow.cost.base import CostModel
from rlflow.cost.fragment import describe, extract
from rlflow.ir.graph import Graph
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import Rule
from studies.walks import drawn_match

_AROUND_MS = 0.01
"""What is added to the price of a part, so that not the smallest of all seems to save most."""


@dataclass(frozen=True, eq=False)
class Place:
    """A rule, and a part of a graph around one of its matches; `saving` is the logarithm of the prices' ratio."""

    rule: Rule
    before: Graph
    after: Graph
    operators: str
    saving: float


def best_places(
    graph: Graph,
    rules: Sequence[Rule],
    wanted: Collection[Rule],
    walks: Mapping[str, Any],
    cost_model: CostModel,
    seed: int,
) -> dict[str, Place]:
    """Return the place of each wanted rule that fires, by its id, at which it saves the largest part of the price.

    walks: `number` of random walks from the graph by all rules, of so many `steps`.
    """
    best: dict[str, Place] = {}
    rewriter, alone = Rewriter(rules), {rule.id: Rewriter([rule]) for rule in wanted}
    for place in _places(_states(graph, rewriter, walks, seed), rewriter, alone, cost_model):
        known = best.get(place.rule.id)
        if known is None or place.saving > known.saving:
            best[place.rule.id] = place
    return best


def _places(
    states: Iterable[Graph], rewriter: Rewriter, alone: Mapping[str, Rewriter], cost_model: CostModel
) -> Iterator[Place]:
    """Yield the places in these graphs of the rules that have a rewriter of their own."""
    seen = set[tuple[str, str]]()
    for state in states:
        for place, matches in rewriter.matches(state).found():
            rule = rewriter.rules[place]
            if rule.id not in alone:
                continue
            for match in matches:
                part = describe(state, _around(state, match))
                if (rule.id, part.signature) in seen:
                    continue
                seen.add((rule.id, part.signature))
                before = extract(state, part)
                if found := alone[rule.id].matches(before)[0]:
                    after = alone[rule.id].apply(before, found[0])
                    yield Place(rule, before, after, part.description, _saving(cost_model, before, after))


def _states(graph: Graph, rewriter: Rewriter, walks: Mapping[str, Any], seed: int) -> Iterator[Graph]:
    """Yield the graph as it is, and all that is met on walks by drawn rewrites: some rules fire after others."""
    yield graph
    rng = np.random.default_rng(seed)
    for _ in range(walks["number"]):
        state = graph
        for _ in range(walks["steps"]):
            match = drawn_match(rewriter, state, rng)
            if match is None:
                break
            state = rewriter.apply(state, match)
            yield state


def _around(graph: Graph, match: Match) -> list[int]:
    """Return the nodes that a match replaces, and those that read from them or are read by them, operands first."""
    near = {*match.nodes}
    for node in match.nodes:
        near.update(graph.nodes[node].sources, graph.consumers[node])
    positions = graph.positions()
    return sorted((node for node in near if positions[node] >= 0), key=positions.__getitem__)


def _saving(cost_model: CostModel, before: Graph, after: Graph) -> float:
    before_ms, after_ms = (cost_model.runtime_ms(each) + _AROUND_MS for each in (before, after))
    return math.log(before_ms / after_ms)
