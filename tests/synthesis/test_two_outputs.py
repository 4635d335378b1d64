"""Rules of two outputs come out of rules that join two parts, and are rules like any other."""

import numpy as np
from support.rewrites import assert_same_outputs, graph_of
from support.strategies import source, weight

from rlflow.ir import Graph, Node, Ref
from rlflow.ops import registry
from rlflow.rules.library import load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import Rule, rule_from_json
from rlflow.rules.verification.verify import VerificationConfig, certified
from rlflow.synthesis.two_outputs import in_two_outputs

CONFIG = VerificationConfig(shapes=16)


def joined(left: list, right: list, target: list, **variables: object) -> Rule:
    return certified(
        rule_from_json("joined", "test", [["Concat", {"axis": -1}, left, right]], [target], variables), CONFIG
    )


COLUMNS = joined(
    ["MatMul", "x", "v"],
    ["MatMul", "x", "w"],
    ["MatMul", "x", ["Concat", {"axis": -1}, "v", "w"]],
    x={"shape": ["m", "k"]},
    v={"shape": ["k", "n"]},
    w={"shape": ["k", "l"]},
)


def test_the_merge_of_two_products_is_found() -> None:
    """TASO's best known rule: what both read stays a variable, the rest must be known when the model is loaded."""
    rule = in_two_outputs(COLUMNS, CONFIG)
    assert rule is not None
    assert rule.certificate is not None
    assert [rule.spec(name).constant for name in "abc"] == [False, True, True]

    def build(nodes: list[Node]) -> list[Ref]:
        nodes += [source((2, 3), "x"), *(weight(np.ones((3, n), np.float32), f"w{n}") for n in (4, 5))]
        for number in (1, 2):
            operands = [(Ref(i), nodes[i].types[0], nodes[i].constant) for i in (0, number)]
            nodes.append(registry.apply("MatMul", {}, operands))
        return [Ref(3), Ref(4)]

    before: Graph = graph_of(build)
    (match, *_) = Rewriter([rule]).matches(before)[0]
    after = Rewriter([rule]).apply(before, match)
    assert sorted(after.nodes[i].op for i in after.order) == ["MatMul", "Split"]
    assert_same_outputs(before, after, np.random.default_rng(0))


def test_parts_that_share_nothing_are_no_rule() -> None:
    """Two independent activations side by side: nothing is gained, and they would match everywhere."""
    apart = joined(["Relu", "x"], ["Relu", "y"], ["Relu", ["Concat", {"axis": -1}, "x", "y"]])
    assert in_two_outputs(apart, CONFIG) is None


def test_a_rule_without_a_joint_has_one_output() -> None:
    twice = certified(rule_from_json("twice", "test", [["Relu", ["Relu", "x"]]], [["Relu", "x"]]), CONFIG)
    assert in_two_outputs(twice, CONFIG) is None


def test_the_shipped_library_has_enumerated_ones() -> None:
    several = [rule for rule in load().rules if rule.origin.startswith("enumerated") and len(rule.source) == 2]
    assert {"MatMul", "Conv"} <= {rule.source[0].op for rule in several}
