"""What moves or relabels elements cancels, meets and passes; and what must stay stays."""

import numpy as np
import pytest
from support.rewrites import applied, assert_same_outputs, graph_of, operators, read

from rlflow.ir import Graph, Node, Ref
from rlflow.rules.declared import movement
from rlflow.rules.declared.catalogue import rules_of
from rlflow.rules.matching.rewriter import Rewriter

RULES = {rule.name: rule for rule in rules_of(movement)}


def matching(graph: Graph) -> set[str]:
    return {match.rule.name for found in Rewriter(list(RULES.values())).matches(graph) for match in found}


def chain(*steps: tuple[str, dict[str, object]]) -> Graph:
    """Operators one after another over x (2, 1, 3)."""

    def build(nodes: list[Node]) -> list[Ref]:
        value = read(nodes, "x", 2, 1, 3)
        for op, attributes in steps:
            value = applied(nodes, op, value, **attributes)
        return [applied(nodes, "Relu", value)]

    return graph_of(build)


@pytest.mark.parametrize(
    ("first", "second", "rule"),
    [
        (("Unsqueeze", {"axes": (0,)}), ("Squeeze", {"axes": (-4,)}), "cancel-squeeze-of-unsqueeze"),
        (("Squeeze", {"axes": (-2,)}), ("Unsqueeze", {"axes": (1,)}), "cancel-unsqueeze-of-squeeze"),
        (("Reshape", {"shape": (2, 3)}), ("Unsqueeze", {"axes": (-2,)}), "cancel-unsqueeze-of-reshape"),
        (("Reshape", {"shape": (2, 1, 1, 3)}), ("Squeeze", {"axes": (-3,)}), "cancel-squeeze-of-reshape"),
    ],
)
def test_two_that_undo_each_other_vanish(
    first: tuple[str, dict[str, object]], second: tuple[str, dict[str, object]], rule: str
) -> None:
    before = chain(first, second)
    rewriter = Rewriter([RULES[rule]])
    after = rewriter.apply(before, rewriter.matches(before)[0][0])
    assert operators(after) == {"Relu": 1}
    assert_same_outputs(before, after, np.random.default_rng(0))


def test_two_that_do_not_undo_each_other_stay() -> None:
    """As above but for one axis."""
    assert not matching(chain(("Squeeze", {"axes": (-2,)}), ("Unsqueeze", {"axes": (0,)}))) - {"relu-before-transpose"}


@pytest.mark.parametrize(("perm", "moves"), [((1, 0, 2), True), ((0, 2, 1), True), ((2, 1, 0), False)])
def test_only_axes_of_one_element_pass_in_memory(perm: tuple[int, ...], moves: bool) -> None:
    assert ("transpose-of-ones-to-reshape" in matching(chain(("Transpose", {"perm": perm})))) == moves


@pytest.mark.parametrize(("perm", "moves"), [((1, 0, 2), True), ((0, 2, 1), False)])
def test_a_norm_passes_where_its_axis_stays(perm: tuple[int, ...], moves: bool) -> None:
    def build(nodes: list[Node]) -> list[Ref]:
        turned = applied(nodes, "Transpose", read(nodes, "x", 2, 3, 3), perm=perm)
        return [applied(nodes, "LayerNormalization", turned, read(nodes, "g", 3))]

    assert ("layer-norm-before-transpose" in matching(graph_of(build))) == moves
