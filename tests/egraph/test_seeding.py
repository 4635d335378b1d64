"""A trajectory enters an e-graph step by step: every graph on the way is in it, and why."""

import pytest
from support.searches import make

from rlflow import zoo
from rlflow.egraph.model_egraph import ModelEGraph
from rlflow.egraph.seeding import replay_into
from rlflow.errors import ReplayError
from rlflow.ir import Ref
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx
from rlflow.rules import library

SHIPPED = library.load()


@pytest.mark.parametrize("name", ["tiny_chain", "tiny_merge", "bert"])
def test_every_graph_on_the_way_is_in_the_e_graph(name: str) -> None:
    """The outputs of the last are those of the first, and each step is one use of its rule."""
    settings = {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "vocabulary": 50}
    graph = from_onnx(zoo.build(name, **(settings | {"positions": 16} if name == "bert" else {})))
    search = make("greedy", SHIPPED)
    result = search.optimise(graph, Budget())
    assert result.trajectory.steps
    egraph = ModelEGraph.from_graph(graph)
    last, classes = replay_into(egraph, graph, result.trajectory, search.rewriter)

    assert [use.rule.id for use in egraph.uses] == [step.rule for step in result.trajectory.steps]
    assert set(last.nodes) == set(result.best.nodes)
    assert tuple(egraph.find(classes[ref]) for ref in result.best.outputs) == egraph.outputs
    for identifier, node in result.best.nodes.items():
        number = egraph.find_node(classes[Ref(identifier)])
        kept, _, children = egraph.node(number)
        assert kept.signature == node.signature
        assert children == tuple(egraph.find(classes[ref]) for ref in node.inputs if ref is not None)
    for use in egraph.uses:
        for root, output in zip(use.roots, use.outputs, strict=True):
            assert egraph.find(root) == egraph.find(output)
        assert set(use.roots) >= {root for root in use.roots if egraph.application(root) in use.source}


def test_a_trajectory_of_another_library_is_refused() -> None:
    graph = from_onnx(zoo.build("tiny_chain"))
    search = make("greedy", SHIPPED)
    trajectory = search.optimise(graph, Budget()).trajectory
    with pytest.raises(ReplayError, match="not in the library"):
        replay_into(ModelEGraph.from_graph(graph), graph, trajectory, type(search.rewriter)([]))
