"""The rules of Concat and Split at work: what they make of graphs, that the outputs stay, and that instances are
drawn."""

from random import Random

import numpy as np
import pytest
from support.rewrites import applied, assert_same_outputs, graph_of, operators, read, rewritten

from rlflow.ir import Graph, Node, Ref
from rlflow.rules.declared import joins
from rlflow.rules.declared.catalogue import rules_of
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.verification import sampler

RULES = {rule.name: rule for rule in rules_of(joins)}


def test_two_products_become_one_and_two_again() -> None:
    def products(nodes: list[Node]) -> list[Ref]:
        x, y, w = read(nodes, "x", 2, 3, 4), read(nodes, "y", 2, 5, 4), read(nodes, "w", 2, 4, 6)
        left, right = applied(nodes, "MatMul", x, w), applied(nodes, "MatMul", y, w)
        return [applied(nodes, "Concat", left, right, axis=-2)]

    before = graph_of(products)
    after = rewritten(RULES, before, "product-of-whole-rows")
    assert operators(after) == {"Concat": 1, "MatMul": 1}
    again = rewritten(RULES, after, "product-of-row-parts")
    assert operators(again) == operators(before)
    for graph in (after, again):
        assert_same_outputs(before, graph, np.random.default_rng(0))


@pytest.mark.parametrize("axis", [-1, -2, -3])
def test_a_joint_follows_the_axes_that_a_transpose_moves(axis: int) -> None:
    def turned(nodes: list[Node]) -> list[Ref]:
        shapes = [[2, 3, 4], [2, 3, 4]]
        shapes[1][axis] += 1
        parts = [read(nodes, name, *shape) for name, shape in zip("xy", shapes, strict=True)]
        return [applied(nodes, "Transpose", applied(nodes, "Concat", *parts, axis=axis), perm=(2, 0, 1))]

    before = graph_of(turned)
    after = rewritten(RULES, before, "transpose-of-parts")
    assert operators(after) == {"Transpose": 2, "Concat": 1}
    back = rewritten(RULES, after, "transpose-of-whole")
    assert operators(back) == operators(before)
    for graph in (after, back):
        assert_same_outputs(before, graph, np.random.default_rng(0))


def joined_and_split(*sizes: int) -> Graph:
    """Three columns and five, joined and split into so many."""

    def build(nodes: list[Node]) -> list[Ref]:
        x, y = read(nodes, "x", 2, 3), read(nodes, "y", 2, 5)
        split = applied(nodes, "Split", applied(nodes, "Concat", x, y, axis=-1), axis=-1, split=sizes)
        return [applied(nodes, "Relu", Ref(split.node, i)) for i in range(2)]

    return graph_of(build)


def test_parts_of_a_join_are_what_was_joined() -> None:
    before = joined_and_split(3, 5)
    after = rewritten(RULES, before, "part-0-of-join", "part-1-of-join")
    assert operators(after) == {"Relu": 2}
    assert_same_outputs(before, after, np.random.default_rng(0))


def test_other_parts_of_a_join_stay() -> None:
    """Split elsewhere than it was joined, a part is no operand: not vacuous, the sizes alone differ from above."""
    rewriter = Rewriter([RULES["part-0-of-join"], RULES["part-1-of-join"]])
    assert not any(rewriter.matches(joined_and_split(4, 4)))


def test_sums_that_broadcast_along_the_joint_stay() -> None:
    """One column and three beside four columns: the parts do not fit, though the whole does."""

    def crooked(nodes: list[Node]) -> list[Ref]:
        shapes = {"x": (2, 1), "y": (2, 3), "v": (2, 3), "w": (2, 1)}
        x, y, v, w = (read(nodes, name, *shape) for name, shape in shapes.items())
        joined = [applied(nodes, "Concat", *pair, axis=-1) for pair in ((x, y), (v, w))]
        return [applied(nodes, "Add", *joined)]

    assert not any(Rewriter([RULES["add-of-parts"]]).matches(graph_of(crooked)))


def test_sizes_are_drawn_along_the_axis_that_was_drawn() -> None:
    random = Random(0)
    rule = RULES["part-0-of-join"]
    axes = set()
    for _ in range(30):
        drawn = sampler.draw(rule, random)
        axis, sizes = drawn.attributes["?k"], drawn.attributes["?s"]
        assert isinstance(axis, int)
        assert sizes == tuple(drawn.shape(name)[axis] for name in "xy")
        axes.add(axis)
    assert len(axes) >= 3
