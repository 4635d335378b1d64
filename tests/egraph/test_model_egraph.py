"""The e-graph of a model holds every node of it, and a stored form of every constant."""

import pytest
from support.egraphs import built

from rlflow import zoo
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.ir import Ref
from rlflow.onnx_io import from_onnx


@pytest.mark.parametrize("name", ["loop", "tiny_chain", "nasrnn"])
def test_every_node_of_a_model_can_be_made_again(name: str) -> None:
    """Operands that are left out, subgraphs with captured values and several outputs included."""
    settings = {"steps": 2, "hidden": 8} if name == "nasrnn" else {}
    graph = from_onnx(zoo.build(name, **settings))
    egraph = ModelEGraph.from_graph(graph)
    for identifier, node in graph.nodes.items():
        for place in range(len(node.types)):
            kept, output, children = egraph.node(egraph.class_of[Ref(identifier, place)])
            assert output == place
            assert (kept.op, kept.signature) == (node.op, node.signature)
            assert list(children) == [egraph.class_of[ref] for ref in node.inputs if ref is not None]


def test_the_constant_forms_of_classes_lead_to_weights() -> None:
    """Even where a constant is equal to an expression of itself."""
    egraph = ModelEGraph.from_graph(built(("Add", (2, 3)), ("MatMul", (4, 0))))
    egraph.unite(egraph.class_of[Ref(4)], egraph.class_of[Ref(2)])
    egraph.rebuild()
    form = egraph.constant_form(egraph.class_of[Ref(4)])
    assert egraph.node(form).node.op == "Weight"
