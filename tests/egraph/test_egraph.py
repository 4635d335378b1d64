"""What the e-graph says is equal is so, and it says all that it should within its bounds."""

import pytest

from rlflow.egraph.egraph import EGraph
from rlflow.errors import RuleError
from rlflow.ir.tensor_type import TensorType
from rlflow.rules.pattern import parse

TYPES = {name: TensorType("float32", (2, 2)) for name in "abcdwxyz"}


def test_equals_applied_to_equals_are_equal() -> None:
    """They are not before the two classes are one, nor before the graph is rebuilt: nothing else makes them equal."""
    graph = EGraph(TYPES)
    a, b = graph.add(parse("a")), graph.add(parse("b"))
    one, other = (graph.add(parse(["Relu", ["MatMul", name, "c"]])) for name in "ab")
    bystander = graph.add(parse(["Relu", ["MatMul", "d", "c"]]))
    graph.unite(a, b)
    assert graph.find(one) != graph.find(other)
    assert graph.rebuild()
    assert graph.find(one) == graph.find(other) != graph.find(bystander)
    assert len(graph) == 4
    assert not graph.rebuild()


def test_a_term_is_looked_up_under_any_of_its_names() -> None:
    graph = EGraph(TYPES)
    term = graph.add(parse(["Add", ["Relu", "a"], "b"]))
    graph.unite(graph.add(parse("c")), graph.add(parse("a")))
    graph.rebuild()
    size = len(graph)
    assert graph.lookup(parse(["Add", "b", ["Relu", "c"]])) == graph.find(term)
    assert graph.lookup(parse(["Add", "b", ["Relu", "d"]])) is None
    assert graph.lookup(parse(["Relu", ["Relu", "a"]])) is None
    assert len(graph) == size


def test_a_copy_goes_its_own_way() -> None:
    graph = EGraph(TYPES)
    a, b = graph.add(parse(["Relu", "a"])), graph.add(parse(["Relu", "b"]))
    twin = graph.copy()
    twin.unite(a, b)
    twin.add(parse(["Relu", "c"]))
    assert twin.find(a) == twin.find(b)
    assert graph.find(a) != graph.find(b)
    assert (len(graph), len(twin)) == (2, 3)


def test_values_of_two_types_are_never_equal() -> None:
    graph = EGraph({"a": TensorType("float32", (2, 3)), "b": TensorType("float32", (3, 2))})
    with pytest.raises(RuleError, match=r"float32\[2, 3\].*float32\[3, 2\]"):
        graph.unite(graph.add(parse("a")), graph.add(parse("b")))
