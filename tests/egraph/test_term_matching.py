"""Matching in an e-graph: attributes are bound, operands of a sum come in any order, numbers are known."""

import pytest
from support.known_rules import knowing

from rlflow.ir.tensor_type import TensorType
from rlflow.rules import library as rule_library
from rlflow.rules.library import Library
from rlflow.rules.pattern import parse
from rlflow.synthesis.prune import KnownRules

TYPES = {name: TensorType("float32", (2, 2)) for name in "abcdwxyz"}


@pytest.fixture(scope="module")
def shipped() -> KnownRules:
    return knowing(*rule_library.load().rules)


def test_attributes_are_bound_and_computed(shipped: KnownRules) -> None:
    types = {"x": TensorType("float32", (2, 3, 4))}
    turned = parse(["Transpose", {"perm": [1, 2, 0]}, ["Transpose", {"perm": [1, 2, 0]}, "x"]])
    assert shipped.explain(turned, parse(["Transpose", {"perm": [2, 0, 1]}, "x"]), types)
    cube = {"x": TensorType("float32", (2, 2, 2))}
    assert not shipped.explain(turned, parse(["Transpose", {"perm": [1, 2, 0]}, "x"]), cube)


def test_operands_of_a_sum_come_in_any_order(shipped: KnownRules) -> None:
    """Only one of the three has the shape of the rule's bias, so that no other order of them matches."""
    types = {**TYPES, "v": TensorType("float32", (2,))}
    for operands in ("xyv", "xvy", "vxy"):
        assert shipped.explain(parse(["Sum", *operands]), parse(["Add", ["Add", "x", "v"], "y"]), types)


def test_a_number_that_nothing_tells_is_not_made_up(shipped: KnownRules, library: Library) -> None:
    """The source of the rule is there, well typed, but for the number that its epsilon must be."""
    fuse = library.get("fuse-layer-norm")
    types = {"x": TensorType("float32", (2, 4)), "e": TensorType("float32", ())}
    types |= {name: TensorType("float32", (4,)) for name in "gc"}
    target = parse(["LayerNormalization", {"axis": -1, "epsilon": 1e-5}, "x", "g", "c"])
    assert not shipped.explain(fuse.source[0], target, types)


MERGES = {"merge-2-matmuls", "split-matmul-2"}


def test_a_rule_of_two_outputs_needs_both(shipped: KnownRules, library: Library) -> None:
    """Neither product alone is merged, nor are both without the rule: nothing else among linear rules leads there."""
    linear = knowing(*(rule for rule in library.rules if rule.family == "linear"))
    merged = ["Split", {"axis": -1, "split": [2, 2]}, ["MatMul", "x", ["Concat", {"axis": -1}, "a", "b"]]]
    pairs = [(parse(["MatMul", "x", name]), parse(["@", i, merged])) for i, name in enumerate("ab")]
    assert linear.explain_all(pairs, TYPES)
    assert linear.lead_all(pairs, TYPES)
    assert not any(linear.explain(*pair, TYPES) for pair in pairs)
    crossed = [(pairs[0][0], pairs[1][1]), (pairs[1][0], pairs[0][1])]
    assert not shipped.explain_all(crossed, TYPES)
    others = (rule for rule in library.rules if rule.family == "linear" and rule.name not in MERGES)
    assert not knowing(*others).explain_all(pairs, TYPES)
