"""What a picture shows, in closed form on graphs of a few nodes."""

import json
import re

from support.square_graphs import graph_of, node, source, weight

from rlflow.show.boxes import Box, model_panels, to_dot

TYPE = "float32[4, 4]"


def named_nodes():
    return [source("x"), weight("w"), node("MatMul", 0, 1, name="m"), node("Relu", 2, name="r")]


def test_constants_are_left_out_and_operands_come_first() -> None:
    panels = model_panels(graph_of(named_nodes(), 3))
    assert panels == {
        "": [
            Box(f"x\n{TYPE}", "value"),
            Box(f"MatMul\n{TYPE}", "operator", (0,)),
            Box(f"Relu\n{TYPE}", "operator", (1,)),
            Box("y0", "value", (2,)),
        ]
    }


def test_what_only_one_graph_has_is_marked() -> None:
    """The product is untouched, the Relu became a Tanh, and a Neg is new; numbers of nodes do not matter."""
    before = graph_of(named_nodes(), 3)
    after = graph_of(
        [weight("w"), source("x"), node("MatMul", 1, 0, name="m"), node("Tanh", 2, name="r"), node("Neg", 3, name="n")],
        4,
    )
    panels = model_panels(before, after)
    kinds = {title: [(box.label.split("\n")[0], box.kind) for box in panel] for title, panel in panels.items()}
    assert kinds == {
        "before": [("x", "value"), ("MatMul", "operator"), ("Relu", "removed"), ("y0", "value")],
        "after": [("x", "value"), ("MatMul", "operator"), ("Tanh", "added"), ("Neg", "added"), ("y0", "value")],
    }


def test_another_weight_is_a_change() -> None:
    """A factor that was folded into a weight leaves the operator's own name and type as they were."""
    nodes = named_nodes()
    nodes[1] = weight("w_times_2")
    panels = model_panels(graph_of(named_nodes(), 3), graph_of(nodes, 3))
    assert [box.kind for box in panels["after"]] == ["value", "added", "operator", "value"]


def test_a_graph_beside_itself_has_no_marks() -> None:
    graph = graph_of(named_nodes(), 3)
    assert model_panels(graph, graph)["before"] == model_panels(graph, graph)["after"] == model_panels(graph)[""]


def test_dot_has_each_box_and_each_edge_once_and_odd_names_quoted() -> None:
    nodes = named_nodes()
    nodes[0] = source('a "quoted" \\ name')
    panels = model_panels(graph_of(nodes, 3), graph_of(named_nodes(), 3))
    text = to_dot(panels)
    assert (text.count("{"), text.count("subgraph")) == (text.count("}"), 2)
    boxes = [json.loads(label) for label in re.findall(r'^ +n\d+_\d+ \[label=(".*"), fillcolor', text, re.MULTILINE)]
    assert boxes == [box.label for panel in panels.values() for box in panel]
    edges = re.findall(r"n(\d+)_(\d+) -> n(\d+)_(\d+);", text)
    assert len(edges) == sum(len(box.operands) for panel in panels.values() for box in panel) == 6
    assert all(a == b for a, _, b, _ in edges), "no edge leads from one graph to the other"
