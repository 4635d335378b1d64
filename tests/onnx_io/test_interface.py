"""The declarations of a model stay: documentation, metadata, functions, inputs that nothing reads."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from support.onnx_models import Build, Survives, floats, twice

from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.onnx_io.interface import interface_inputs, without_computation
from rlflow.runtime.session import open_session, run

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def test_documentation_metadata_and_producer_are_kept(model: Build, survives: Survives) -> None:
    before = model([helper.make_node("Relu", ["x"], ["y"])], [floats("x", 2, 3)], [floats("y", 2, 3)], doc_string="G")
    before.doc_string, before.producer_name, before.model_version, before.domain = "M", "someone", 7, "example.org"
    before.graph.input[0].doc_string = "an input"
    helper.set_model_props(before, {"author": "A", "licence": "L"})
    before.graph.metadata_props.add(key="k", value="v")
    after = survives(before)
    for field in ("doc_string", "producer_name", "model_version", "domain"):
        assert getattr(after, field) == getattr(before, field)
    assert list(after.metadata_props) == list(before.metadata_props)
    assert after.graph.doc_string == "G"
    assert after.graph.name == "graph"
    assert list(after.graph.metadata_props) == list(before.graph.metadata_props)


def test_defaults_of_inputs_can_still_be_overridden(model: Build, survives: Survives) -> None:
    nodes = [helper.make_node("Neg", ["w"], ["c"]), helper.make_node("Add", ["x", "c"], ["y"])]
    before = model(nodes, [floats("x", 2), floats("w", 2)], [floats("y", 2)], weights={"w": np.ones(2, np.float32)})
    after = survives(before)
    feeds = {"x": np.zeros(2, np.float32), "w": np.full(2, 5, np.float32)}
    assert run(open_session(after, "as_written"), feeds)["y"].tolist() == [-5, -5]
    assert run(open_session(after, "as_written"), {"x": feeds["x"]})["y"].tolist() == [-1, -1]


def test_before_format_version_4_weights_stay_declared(model: Build) -> None:
    nodes = [helper.make_node("Reshape", ["x", "s"], ["r"]), helper.make_node("Add", ["r", "w"], ["y"])]
    declared = helper.make_tensor_value_info("s", TensorProto.INT64, [2])
    before = model(
        nodes,
        [floats("w", 2), floats("x", 2, 3), declared],
        [floats("y", 3, 2)],
        weights={"s": np.array([3, 2]), "w": np.ones(2, np.float32)},
        ir_version=3,
        opset=8,
    )
    graph = from_onnx(before)
    assert [graph.nodes[i].names[0] for i in graph.inputs] == ["x"]
    after = to_onnx(graph)
    onnx.checker.check_model(after)
    assert {i.name for i in after.graph.input} == {"x", *(t.name for t in after.graph.initializer)}
    expected, actual = (run(open_session(m, "as_written"), {"x": X}) for m in (before, after))
    assert np.array_equal(expected["y"], actual["y"])


def test_unused_inputs_stay_and_unused_weights_go(model: Build, survives: Survives) -> None:
    nodes = [helper.make_node("Neg", ["x"], ["y"]), helper.make_node("Exp", ["x"], ["dead"])]
    before = model(nodes, [floats("x", 2), floats("unused", 3)], [floats("y", 2)], weights={"w": np.ones(2)})
    after = survives(before)
    assert not after.graph.initializer
    assert [n.op_type for n in after.graph.node] == ["Neg"]


def test_local_functions_are_kept(model: Build, survives: Survives) -> None:
    nodes = [helper.make_node("Twice", ["x"], ["t"], domain="local"), helper.make_node("Neg", ["t"], ["y"])]
    before = model(nodes, [floats("x", 2)], [floats("y", 2)], domains=["local"], functions=[twice("Twice")])
    after = survives(before)
    assert list(after.functions) == list(before.functions)


def _model(ir_version: int) -> onnx.ModelProto:
    """y = x w + b, where `w` is a weight and `b` an input with a default; both are listed as inputs."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Add", ["m", "b"], ["y"])]
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 2]) for name in ("x", "b")]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 2])]
    weights = [numpy_helper.from_array(np.eye(2, dtype=np.float32), name) for name in ("w", "b")]
    graph = helper.make_graph(nodes, "g", inputs, outputs, initializer=weights, doc_string="kept")
    return helper.make_model(graph, ir_version=ir_version, opset_imports=[helper.make_opsetid("", 17)])


def test_an_input_with_a_default_can_be_fed() -> None:
    assert [value.name for value in interface_inputs(_model(8))] == ["x", "b"]


def test_old_models_list_weights_that_cannot_be_fed() -> None:
    """Before version 4 of the file format, the same list meant something else."""
    assert [value.name for value in interface_inputs(_model(3))] == ["x"]


def test_nodes_and_weights_are_left_out_and_defaults_stay() -> None:
    bare = without_computation(_model(8))
    assert not bare.graph.node
    assert [tensor.name for tensor in bare.graph.initializer] == ["b"]
    assert [value.name for value in bare.graph.output] == ["y"]
    assert (bare.graph.doc_string, bare.opset_import[0].version) == ("kept", 17)
