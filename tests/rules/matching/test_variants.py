"""Rules of several outputs: merging never closes a cycle."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.rewrites import assert_same_outputs, graph_of
from support.strategies import source
from support.walks import LIBRARY, add, leaf, random_weight

from rlflow.errors import RuleError
from rlflow.ir import Node, Ref, structural_hash, validate
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import rule_from_json


@settings(max_examples=20)
@given(order=st.permutations(range(4)), biased=st.booleans())
def test_merging_products_never_closes_a_cycle(order: list[int], biased: bool) -> None:
    """Products of one input, two of which feed further products of the same sizes, merged in any order."""
    merges = Rewriter([LIBRARY.get(name) for name in ("merge-2-matmuls", "merge-3-matmuls", "merge-2-linears")])

    def build(nodes: list[Node]) -> list[Ref]:
        x = leaf(nodes, source((2, 3), "x"))
        outputs = []
        for _ in range(2):
            y = add(nodes, "MatMul", x, random_weight(nodes, 3, 3))
            y = add(nodes, "Add", y, random_weight(nodes, 3)) if biased else y
            z = add(nodes, "MatMul", y, random_weight(nodes, 3, 3))
            again = add(nodes, "MatMul", y, random_weight(nodes, 3, 3))
            outputs += [z, again]
        return outputs

    graph = start = graph_of(build)
    for choice in order:
        found = [m for group in merges.matches(graph) for m in group]
        if found:
            graph = merges.apply(graph, found[choice % len(found)])
            validate(graph)
    assert structural_hash(graph) != structural_hash(start)
    assert_same_outputs(start, graph, np.random.default_rng(0))


def test_rules_whose_outputs_could_feed_each_other_are_refused() -> None:
    rule = rule_from_json(
        "merge-anything",
        "test",
        [["MatMul", "x", "v"], ["MatMul", "x", "w"]],
        [["MatMul", "x", "v"], ["MatMul", "x", "w"]],
    )
    with pytest.raises(RuleError, match=r"merge-anything.*must be constant"):
        Rewriter([rule])


def test_unrelated_outputs_are_refused() -> None:
    variables = {"x": {"constant": True}, "y": {"constant": True}}
    rule = rule_from_json(
        "two-rules", "test", [["Relu", "x"], ["Relu", "y"]], [["Relu", "y"], ["Relu", "x"]], variables
    )
    with pytest.raises(RuleError, match="two-rules"):
        Rewriter([rule]).matches(graph_of(lambda nodes: [add(nodes, "Relu", leaf(nodes, source((2,), "x")))]))


def test_nothing_is_known_of_bounds_where_outputs_are_replaced_together() -> None:
    sides = [["Relu", "x"], ["Neg", "x"]], [["Neg", "x"], ["Relu", "x"]]
    rule = rule_from_json("two", "test", *sides, where=(["bounded", "x"],))
    with pytest.raises(RuleError, match="nothing is known of bounds"):
        Rewriter([rule])
