"""Rewrites drawn at random: a rule that matches, then one of its matches."""

from __future__ import annotations

import numpy as np

from rlflow.ir.graph import Graph
from rlflow.rules.matching.match import Match
from rlflow.rules.matching.rewriter import Rewriter


def drawn_match(rewriter: Rewriter, graph: Graph, rng: np.random.Generator) -> Match | None:
    """Draw a match; None if no rule matches."""
    found = [matches for _, matches in rewriter.matches(graph).found()]
    if not found:
        return None
    matches = found[int(rng.integers(len(found)))]
    return matches[int(rng.integers(len(matches)))]


def rewritten(rewriter: Rewriter, graph: Graph, steps: int, rng: np.random.Generator) -> Graph:
    """Return the graph after so many drawn rewrites, or when no rule matches any more."""
    for _ in range(steps):
        match = drawn_match(rewriter, graph, rng)
        if match is None:
            break
        graph = rewriter.apply(graph, match)
    return graph
