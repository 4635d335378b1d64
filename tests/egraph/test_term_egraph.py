"""Terms are known under any of their names, typed, and matched as they were when the graph was last rebuilt."""

import pytest

from rlflow.egraph.term_egraph import TermEGraph
from rlflow.errors import RuleError, TypeInferenceError
from rlflow.ir.tensor_type import TensorType
from rlflow.rules.pattern import parse

TYPES = {name: TensorType("float32", (2, 2)) for name in "abcdwxyz"}


def test_a_term_is_looked_up_under_any_of_its_names() -> None:
    graph = TermEGraph(TYPES)
    term = graph.add(parse(["Add", ["Relu", "a"], "b"]))
    graph.unite(graph.add(parse("c")), graph.add(parse("a")))
    graph.rebuild()
    size = len(graph)
    assert graph.lookup(parse(["Add", "b", ["Relu", "c"]])) == graph.find(term)
    assert graph.lookup(parse(["Add", "b", ["Relu", "d"]])) is None
    assert graph.lookup(parse(["Relu", ["Relu", "a"]])) is None
    assert len(graph) == size


def test_what_is_not_well_typed_cannot_be_added_and_is_not_known() -> None:
    graph = TermEGraph({"a": TensorType("float32", (2, 3)), "b": TensorType("float32", (2, 3))})
    product = parse(["MatMul", "a", "b"])
    with pytest.raises(TypeInferenceError):
        graph.add(product)
    assert graph.lookup(parse("a")) != graph.lookup(parse("b")), "both are there"
    assert graph.lookup(product) is None


def test_nodes_stay_as_they_were_until_the_graph_is_rebuilt() -> None:
    """So that matches may be applied while others are looked for; afterwards there is one node in place of two."""
    graph = TermEGraph(TYPES)
    one, other = (graph.add(parse(["Relu", name])) for name in "ab")
    graph.rebuild()
    assert list(graph.nodes_by_operator["Relu"]) == [one, other]
    graph.unite(graph.add(parse("a")), graph.add(parse("b")))
    graph.add(parse(["Relu", "c"]))
    assert list(graph.nodes_by_operator["Relu"]) == [one, other]
    graph.rebuild()
    assert len(graph.nodes_by_operator["Relu"]) == 2
    assert [len(nodes) for nodes in graph.nodes_by_operator["Relu"].values()] == [1, 1]


def test_values_of_two_types_are_never_equal() -> None:
    graph = TermEGraph({"a": TensorType("float32", (2, 3)), "b": TensorType("float32", (3, 2))})
    with pytest.raises(RuleError, match=r"float32\[2, 3\].*float32\[3, 2\]"):
        graph.unite(graph.add(parse("a")), graph.add(parse("b")))
