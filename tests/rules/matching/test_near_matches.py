"""What stands in the way of a match: each reason on a graph of a few nodes, and agreement with the matcher on all."""

from dataclasses import replace

import numpy as np
import pytest
from support.square_graphs import graph_of, node, source, weight
from support.walks import LIBRARY, REWRITER

from rlflow import zoo
from rlflow.ir import Graph, TensorType
from rlflow.onnx_io import from_onnx
from rlflow.rules.matching.discrimination_tree import DiscriminationTree, outline
from rlflow.rules.matching.near_matches import NearMatch, lacking, near_matches, refusal
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.matching.variants import compile_variants
from rlflow.rules.rule import Rule, rule_from_json

ASSOCIATE = LIBRARY.get("associate-weights")
"""MatMul(MatMul(x, v), w) => MatMul(x, MatMul(v, w)), if v and w are constant."""


def reasons(graph: Graph, rule: Rule) -> list[str]:
    return [near.reason for near in near_matches(graph, rule)]


def test_an_operator_is_another_one() -> None:
    graph = graph_of([source("x"), weight("w"), node("Tanh", 0, name="t"), node("MatMul", 2, 1, name="m")], 3)
    assert near_matches(graph, ASSOCIATE) == [NearMatch(3, "where the rule wants MatMul, there is Tanh", 1, 2)]


def test_an_operand_is_not_constant() -> None:
    nodes = [source("x"), weight("v"), source("z"), node("MatMul", 0, 1, name="a"), node("MatMul", 3, 2, name="b")]
    assert reasons(graph_of(nodes, 4), ASSOCIATE) == [
        "where the rule wants MatMul, there is an input of the graph",
        "w is not constant",
    ]


def test_a_value_inside_is_read_elsewhere_or_an_output() -> None:
    nodes = [source("x"), weight("v"), weight("w"), node("MatMul", 0, 1, name="a"), node("MatMul", 3, 2, name="b")]
    read = graph_of([*nodes, node("Tanh", 3, name="t")], 4, 5)
    assert "the value of MatMul inside is read elsewhere, too, by Tanh" in reasons(read, ASSOCIATE)
    given = graph_of(nodes, 4, 3)
    assert "the value of MatMul inside is an output as well" in reasons(given, ASSOCIATE)


def test_a_match_has_no_reason() -> None:
    nodes = [source("x"), weight("v"), weight("w"), node("MatMul", 0, 1, name="a"), node("MatMul", 3, 2, name="b")]
    graph = graph_of(nodes, 4)
    assert Rewriter([ASSOCIATE]).matches(graph).counts == (1,)
    assert [near.root for near in near_matches(graph, ASSOCIATE)] == [3], "the inner product, of which x is no product"


def declared(source_term: object, target: object, **rest: object) -> Rule:
    return rule_from_json("mine", "test", [source_term], [target], **rest)  # type: ignore[arg-type]


def test_a_condition_does_not_hold() -> None:
    rule = declared(["Relu", "x"], ["Relu", ["Relu", "x"]], where=[["==", ["rank", "x"], 3]])
    graph = graph_of([source("x"), node("Relu", 0, name="r")], 1)
    assert reasons(graph, rule) == ["it holds only if rank(x) == 3; here 2 and 3"]
    worth = declared(["Relu", "x"], ["Relu", ["Relu", "x"]], profitable_if=[["<", ["elements", "x"], 3]])
    assert reasons(graph, worth) == ["it is tried only if elements(x) < 3; here 16 and 3"]


def test_a_shape_or_an_element_type_does_not_fit() -> None:
    rule = declared(["Relu", "x"], ["Relu", ["Relu", "x"]], variables={"x": {"shape": ["a", "b", "c"]}})
    graph = graph_of([source("x"), node("Relu", 0, name="r")], 1)
    assert reasons(graph, rule) == ["x has shape [4, 4], not [a, b, c]"]
    free = declared(["Relu", "x"], ["Relu", ["Relu", "x"]])
    assert reasons(of_type(TensorType("float16", (4, 4)), "Relu"), free) == [
        "x is float16, of which no certificate speaks"
    ]


def of_type(kind: TensorType, op: str) -> Graph:
    nodes = [source("x"), node(op, 0, name="r")]
    return graph_of([replace(n, types=(kind,)) for n in nodes], 1)


def test_sizes_are_left_as_they_are() -> None:
    rule = declared(["Neg", "x"], ["Neg", ["Neg", ["Neg", "x"]]])
    assert reasons(of_type(TensorType("int64", (4,)), "Neg"), rule) == [
        "what it replaces are sizes, which are left as they are"
    ]
    assert [*Rewriter([rule]).matches(of_type(TensorType("int64", (4, 4)), "Neg")).counts] == [1]


def test_an_attribute_is_another_one() -> None:
    rule = declared(["Softmax", {"axis": -1}, "x"], ["Softmax", {"axis": -1}, ["Relu", "x"]])
    graph = graph_of([source("x"), node("Softmax", 0, name="s", axis=0)], 1)
    assert reasons(graph, rule) == ["axis of Softmax is 0, not -1"]


def test_one_variable_is_two_values() -> None:
    rule = declared(["Add", "x", ["Relu", "x"]], "x")
    graph = graph_of([source("x"), source("z"), node("Relu", 1, name="r"), node("Add", 0, 2, name="a")], 3)
    assert "the rule reads x in two places, here they differ" in reasons(graph, rule)


def test_a_number_is_another_one() -> None:
    rule = declared(["Mul", "x", ["Constant", {"value_float": 0.5}]], "x")
    scalar = TensorType("float32", ())

    class Three:
        digest = "three"

        def array(self) -> np.ndarray:
            return np.float32(3.0).reshape(())

    for operands in ((0, 1), (1, 0)):  # Mul commutes
        number = type(weight())("Weight", (), {}, (scalar,), ("c",), True, Three())
        graph = graph_of([source("x"), number, node("Mul", *operands, name="m")], 2)
        assert "where the rule wants 0.5, there is the number 3" in reasons(graph, rule)


def test_a_newer_opset_is_wanted() -> None:
    graph = graph_of([source("x"), node("Relu", 0, name="r")], 1, opset=13)
    newer = declared(["Relu", "x"], ["Relu", ["Relu", "x"]], opset=18)
    assert reasons(graph, newer) == ["it writes operators of ai.onnx 18; the model has opset 13"]


def test_what_is_far_is_not_told() -> None:
    """Of three operators in a row one is there."""
    rule = declared(["Relu", ["Tanh", ["Neg", "x"]]], "x")
    graph = graph_of([source("x"), node("Relu", 0, name="r")], 1)
    assert near_matches(graph, rule) == []
    assert lacking(graph, rule) == ["Neg", "Tanh"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert", "conv", "gpt2", "tiny_merge", "tiny_scale", "tiny_transpose"])
def test_a_full_occurrence_is_a_match_or_has_a_reason(name: str) -> None:
    """For every rule of the library: the matcher's own matches are those occurrences that have no reason."""
    small = {"bert": {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "vocabulary": 50}}
    small["gpt2"] = small["bert"]
    graph = from_onnx(zoo.build(name, **small.get(name, {})))
    matches, refused = REWRITER.matches(graph), 0
    for index, rule in enumerate(LIBRARY.rules):
        variants = [(variant, outline(variant)) for variant in compile_variants(rule)]
        tree, free = DiscriminationTree(variants), set()
        for root in graph.order:
            for occurrence in tree.occurrences(graph, root):
                reason = refusal(graph, *variants[occurrence.variant], occurrence)
                refused += reason != ""
                if not reason:
                    free.add(frozenset(i for i in occurrence.nodes if not graph.nodes[i].constant))
        assert free == {frozenset(match.nodes) for match in matches[index]}, rule.name
        assert not {near.root for near in near_matches(graph, rule)} & {
            m.nodes[0] for m in matches[index] if len(m.roots) == 1
        }
    assert refused, "some occurrences are refused, so that reasons are put to the test"
