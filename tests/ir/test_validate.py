"""Each invariant of a graph, broken on purpose, is named with its node."""

from dataclasses import replace
from typing import Any

import pytest
from support.square_graphs import SQUARE, graph_of, node, random_graph, source, weight

from rlflow.errors import GraphError
from rlflow.ir import Graph, Node, Ref, validate


def _graph() -> Graph:
    nodes = [source(), weight(), node("Add", 0, 1, name="sum"), node("Relu", 2, name="relu")]
    return graph_of(nodes, 3)


def _with_node(identifier: int, changed: Node) -> dict[str, Any]:
    return {"nodes": {**_graph().nodes, identifier: changed}}


def _with_consumers(**changed: tuple[int, ...]) -> dict[str, Any]:
    return {"consumers": {**_graph().consumers, **{int(k[1:]): v for k, v in changed.items()}}}


CONSTANT_RELU = Node("Relu", (Ref(2),), {}, (SQUARE,), ("relu",), True)
CONSTANT_INPUT = Node("Input", (), {}, (SQUARE,), ("x",), True)
LEAF_WITH_OPERANDS = Node("Weight", (Ref(0),), {}, (SQUARE,), ("w",), True)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (_with_node(3, Node("Relu", (Ref(2),), {}, (SQUARE, SQUARE), ("relu",))), r"node 3 .*2 types for 1 outputs"),
        (_with_node(3, node("Relu", 9)), "reads node 9, which is not in the graph"),
        (_with_node(3, node("Relu", Ref(2, 1))), "reads output 1 of node 2, which has fewer"),
        (_with_node(3, node("Relu", Ref(2, -1))), "reads output -1 of node 2"),
        (_with_node(3, node("Add", 2, 0)), "missing from the consumers of node 0"),
        (_with_node(3, CONSTANT_RELU), "marked constant but depends on an input"),
        (_with_node(0, CONSTANT_INPUT), "marked constant but depends on an input"),
        (_with_node(1, source("w")), "the graph's inputs are its Input nodes and no others"),
        (_with_node(0, weight("x")), "the graph's inputs are its Input nodes and no others"),
        (
            {**_with_node(1, LEAF_WITH_OPERANDS), **_with_consumers(_0=(2, 1))},
            r"node 1 .* is a leaf and has operands",
        ),
        ({**_with_node(4, node("Tanh", 2)), **_with_consumers(_4=(), _2=(3, 4)), "next_id": 5}, "node 4 .* is dead"),
        (_with_consumers(_3=(2,)), r"node 3 .*lists 2 as a consumer, which does not read it"),
        (_with_consumers(_3=(8,)), "lists 8 as a consumer"),
        (_with_consumers(_2=(3, 3)), "lists a consumer twice"),
        (_with_consumers(_7=()), "the consumer index and the nodes disagree"),
        ({"consumers": {}}, "the consumer index and the nodes disagree"),
        ({"outputs": (Ref(9),)}, "is dead|output 'y0' is node 9, which is not in the graph"),
        ({"outputs": (Ref(3), Ref(9)), "output_names": ("y", "z")}, "output 'z' is node 9, which is not in the graph"),
        ({"outputs": (Ref(3, 1),)}, "output 'y0' is output 1 of node 3, which has fewer"),
        ({"output_names": ()}, r"1 outputs under the names \(\)"),
        ({"outputs": (Ref(3), Ref(3)), "output_names": ("y", "y")}, "2 outputs under the names"),
        ({"inputs": (0, 8)}, "input 8 is not in the graph"),
        ({"next_id": 3}, "the next node would be 3, which is not above"),
    ],
)
def test_refusals(changed: dict[str, Any], reason: str) -> None:
    validate(_graph())
    with pytest.raises(GraphError, match=reason):
        validate(replace(_graph(), **changed))


def test_a_cycle() -> None:
    nodes = {0: source(), 1: node("Add", 0, 2), 2: node("Relu", 1)}
    looped = replace(
        _graph(), nodes=nodes, outputs=(Ref(2),), consumers={0: (1,), 1: (2,), 2: (1,)}, inputs=(0,), next_id=3
    )
    with pytest.raises(GraphError, match=r"cycle through nodes \[1, 2\]"):
        validate(looped)


def test_random_graphs_are_valid() -> None:
    for seed in range(20):
        validate(random_graph(seed))
