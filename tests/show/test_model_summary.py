"""The summary of a model counts its operators and names what goes in and out; beside another it shows both."""

from collections import Counter

from rlflow import zoo
from rlflow.onnx_io import from_onnx
from rlflow.show.model_summary import summary


def test_operators_are_counted() -> None:
    graph = from_onnx(zoo.build("tiny_merge"))
    told = summary(graph)
    for operator, count in Counter(graph.nodes[i].op for i in graph.order).items():
        assert any(operator in line and str(count) in line for line in told.splitlines())
    assert all(graph.nodes[i].names[0] in told for i in graph.inputs)
    assert all(name in told for name in graph.output_names)


def test_another_model_stands_beside_the_first() -> None:
    """The known optimum has one product where the model has several."""
    before, after = from_onnx(zoo.build("tiny_merge")), from_onnx(zoo.optimum("tiny_merge"))
    counts = [sum(graph.nodes[i].op == "MatMul" for i in graph.order) for graph in (before, after)]
    assert counts[0] > counts[1]
    assert any("MatMul" in line and all(str(n) in line for n in counts) for line in summary(before, after).splitlines())
