"""Matches after an edit are those of the graph matched anew, in an order of their own."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.rewrites import assert_same_outputs, graph_of
from support.strategies import graphs, source
from support.walks import REWRITER, add, leaf, random_weight, walk

from rlflow.ir import Graph, Node, Ref, structural_hash
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter

STEPS_ON_BERT = 25
STEPS_ON_DRAWN = 8


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.exhaustive) for seed in (1, 2))])
def test_incremental_matching_is_matching_on_bert(bert: Graph, library: Library, seed: int) -> None:
    rng = np.random.default_rng(seed)
    end = walk(bert, Rewriter(library.rules), rng, STEPS_ON_BERT)
    assert structural_hash(end) != structural_hash(bert)
    assert_same_outputs(bert, end, rng)


@settings(max_examples=8)
@given(graph=graphs(), seed=st.integers(0, 2**32 - 1))
def test_incremental_matching_is_matching_on_drawn_graphs(graph: Graph, seed: int) -> None:
    rng = np.random.default_rng(seed)
    assume(any(REWRITER.matches(graph)))
    with np.errstate(all="ignore"):
        assert_same_outputs(graph, walk(graph, REWRITER, rng, STEPS_ON_DRAWN), rng)


def test_more_matches_than_any_limit_are_all_listed(library: Library) -> None:
    """An action space may cap the locations of a rule at 200: the rewriter itself must not."""
    count = 250

    def build(nodes: list[Node]) -> list[Ref]:
        x, s = leaf(nodes, source((2, 3), "x")), random_weight(nodes)
        return [add(nodes, "Div", add(nodes, "Relu", x), s) for _ in range(count)]

    graph = graph_of(build)
    (found,) = Rewriter([library.get("divide-to-multiply")]).matches(graph)
    assert len(found) == count
    positions = [graph.positions()[m.roots[0].node] for m in found]
    assert positions == sorted(positions)
    assert len(set(positions)) == count
