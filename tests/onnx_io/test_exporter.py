"""What a caller knows a model by stays: names, order, types, dimensions, defaults, metadata, versions."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.kernels import only_exact_arithmetic_is_folded
from support.onnx_models import Build, Survives, floats, twice
from support.zoo_names import SMALL, ZOO

from rlflow import zoo
from rlflow.equivalence.compare import compare
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.rules.library import load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.session import open_session, run

X = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize("name", ZOO)
def test_zoo_models_survive(name: str) -> None:
    """Bit for bit, except where the export folds sums, whose last bit is another in numpy than in ONNX Runtime."""
    before = zoo.build(name, **SMALL.get(name, {}))
    graph = from_onnx(before)
    after = to_onnx(graph)
    onnx.checker.check_model(after)
    report = compare(before, after, draws=1, setting="as_written")
    assert report.equivalent, report.summary
    assert report.max_absolute_error == 0 or not only_exact_arithmetic_is_folded(graph)
    assert report.non_vacuous_draws == 1


def test_all_zoo_models_but_one_must_survive_bit_for_bit() -> None:
    graphs = {name: from_onnx(zoo.build(name, **SMALL.get(name, {}))) for name in ZOO}
    inexact = [name for name, graph in graphs.items() if not only_exact_arithmetic_is_folded(graph)]
    assert inexact == ["transformer_transducer"]  # projects its table of distances, a MatMul of two weights


def test_a_default_that_a_caller_may_override_is_no_constant(model: Build, survives: Survives) -> None:
    """The shape of what was reshaped follows from the shape that is fed, not from the one that is taken without."""
    nodes = [helper.make_node("Reshape", ["x", "s"], ["r"]), helper.make_node("Shape", ["r"], ["y"])]
    inputs = [floats("x", 2, 3), helper.make_tensor_value_info("s", TensorProto.INT64, [2])]
    output = helper.make_tensor_value_info("y", TensorProto.INT64, [2])
    after = survives(model(nodes, inputs, [output], weights={"s": np.array([1, 6])}))
    session = open_session(after, "as_written", 1)
    for fed, shape in (({}, [1, 6]), ({"s": np.array([3, 2])}, [3, 2])):
        assert run(session, {"x": X, **fed})["y"].tolist() == shape


def test_node_names_are_kept(model: Build, survives: Survives) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"], name="activation"),
        helper.make_node("Hardmax", ["r"], ["y"], name="opaque one"),
    ]
    after = survives(model(nodes, [floats("x", 2, 3)], [floats("y", 2, 3)]))
    assert [n.name for n in after.graph.node] == ["activation", "opaque one"]
    assert [list(n.output) for n in after.graph.node] == [["r"], ["y"]]


def test_what_nodes_say_of_themselves_is_kept(model: Build, survives: Survives) -> None:
    """Of those that a rewrite leaves, understood or not: of two Relus in a row the second goes, with what it says."""
    nodes = [helper.make_node(op, [a], [b]) for op, a, b in (("Neg", "x", "n"), ("Hardmax", "n", "h"))]
    nodes += [helper.make_node("Relu", [a], [b]) for a, b in (("h", "r"), ("r", "y"))]
    for node in nodes:
        node.doc_string = f"why {node.output[0]}"
        node.metadata_props.add(key="namespace", value=f"layer/{node.output[0]}")
    before = model(nodes, [floats("x", 2, 3)], [floats("y", 2, 3)])
    same, said = survives(before), [(n.doc_string, list(n.metadata_props)) for n in nodes]
    assert [(n.doc_string, list(n.metadata_props)) for n in same.graph.node] == said
    graph, rewriter = from_onnx(before), Rewriter(load().rules)
    (match,) = (match for found in rewriter.matches(graph) for match in found if match.roots == graph.outputs)
    rewritten = to_onnx(rewriter.apply(graph, match))
    assert [(n.doc_string, list(n.metadata_props)) for n in rewritten.graph.node] == said[:3]


def test_node_names_stay_distinct(model: Build, survives: Survives) -> None:
    """ONNX Runtime wants them so; a node without a name is called after its output, which may be another's name."""
    nodes = [
        helper.make_node("Relu", ["x"], ["taken"]),
        helper.make_node("Neg", ["taken"], ["n"], name="taken"),
        helper.make_node("Hardmax", ["n"], ["h"]),
        helper.make_node("Hardmax", ["h"], ["y"]),
    ]
    after = survives(model(nodes, [floats("x", 2, 3)], [floats("y", 2, 3)]))
    assert [n.name for n in after.graph.node][2:] == ["", ""]


def test_symbolic_and_unknown_dimensions_are_kept(model: Build, survives: Survives) -> None:
    nodes = [helper.make_node("Transpose", ["x"], ["y"], perm=[1, 0, 2])]
    before = model(nodes, [floats("x", "batch", "time", None)], [floats("y", "time", "batch", None)])
    graph = from_onnx(before)
    assert [str(graph.type_of(r)) for r in graph.outputs] == ["float32[time, batch, #0]"]
    after = survives(before)
    assert not after.graph.input[0].type.tensor_type.shape.dim[2].WhichOneof("value")


def test_an_input_that_is_an_output(model: Build, survives: Survives) -> None:
    nodes = [helper.make_node("Neg", ["x"], ["y"])]
    survives(model(nodes, [floats("x", 2)], [floats("x", 2), floats("y", 2)]))


def test_one_value_as_several_outputs(model: Build, survives: Survives) -> None:
    nodes = [
        helper.make_node("Neg", ["x"], ["a"]),
        helper.make_node("Identity", ["a"], ["b"]),
        helper.make_node("Identity", ["a"], ["c"]),
    ]
    before = model(nodes, [floats("x", 2)], [floats("b", 2), floats("a", 2), floats("c", 2)])
    survives(before)
    graph = from_onnx(before)
    a = next(r for r, n in zip(graph.outputs, graph.output_names, strict=True) if n == "a")
    merged = graph.replace({}, {r: a for r in graph.outputs if r != a})
    after = to_onnx(merged)
    onnx.checker.check_model(after)
    assert compare(before, after).equivalent
    assert sum(n.op_type == "Neg" for n in after.graph.node) == 1


def test_weights_as_outputs_keep_their_name_and_need_no_node(model: Build, survives: Survives) -> None:
    nodes = [helper.make_node("Add", ["x", "w"], ["y"])]
    before = model(nodes, [floats("x", 2)], [floats("w", 2), floats("y", 2)], weights={"w": np.ones(2, np.float32)})
    after = survives(before)
    assert [n.op_type for n in after.graph.node] == ["Add"]
    assert [t.name for t in after.graph.initializer] == ["w"]


def test_a_constant_expression_as_output_is_folded(model: Build, survives: Survives) -> None:
    nodes = [helper.make_node("Neg", ["w"], ["c"]), helper.make_node("Add", ["x", "c"], ["y"])]
    before = model(nodes, [floats("x", 2)], [floats("c", 2), floats("y", 2)], weights={"w": np.ones(2, np.float32)})
    after = survives(before)
    assert [n.op_type for n in after.graph.node] == ["Add"]


def test_optional_operands_and_results_stay_absent(model: Build, survives: Survives) -> None:
    draw = np.random.default_rng(0).standard_normal
    nodes = [
        helper.make_node("Clip", ["x", "", "high"], ["c"]),
        helper.make_node("LSTM", ["c", "w", "r", "", "", "h"], ["", "y", ""], hidden_size=4),
    ]
    weights = {
        "high": np.float32(0.5),
        "w": draw((1, 16, 3)).astype(np.float32),
        "r": draw((1, 16, 4)).astype(np.float32),
        "h": draw((1, 2, 4)).astype(np.float32),
    }
    after = survives(model(nodes, [floats("x", 5, 2, 3)], [floats("y", 1, 2, 4)], weights=weights))
    bounded, recurrent = (list(n.input) for n in after.graph.node)
    assert (len(bounded), bounded[:2]) == (3, ["x", ""])  # a bound is a parameter, whose name is not kept
    assert recurrent == ["c", "w", "r", "", "", "h"]
    assert list(after.graph.node[1].output) == ["", "y", ""]


def test_layer_normalisation_with_its_optional_results_is_carried(model: Build, survives: Survives) -> None:
    nodes = [helper.make_node("LayerNormalization", ["x", "s"], ["y", "", "inverse"])]
    outputs = [floats("y", 2, 3), floats("inverse", 2, 1)]
    survives(model(nodes, [floats("x", 2, 3)], outputs, weights={"s": np.ones(3, np.float32)}), {"x": X})


def test_custom_domains_are_carried_verbatim(model: Build, survives: Survives) -> None:
    node = helper.make_node("Mystery", ["x", "", "w"], ["m"], name="m", domain="example.org", level=3, mode="fast")
    before = model(
        [node, helper.make_node("Relu", ["m"], ["y"])],
        [floats("x", 2)],
        [floats("y", None)],
        weights={"w": np.ones(2, np.float32)},
        domains=["example.org"],
    )
    after = survives(before, runs=False)
    assert after.graph.node[0] == node


def test_a_local_function_that_redefines_an_operator_is_opaque(model: Build) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    before = model(nodes, [floats("x", 2)], [floats("y", 2)], functions=[twice("Relu")])
    graph = from_onnx(before)
    assert [graph.nodes[i].is_opaque for i in graph.order] == [True]


def test_new_names_avoid_all_old_ones(model: Build, survives: Survives) -> None:
    """The exporter numbers its own names; here the model has taken the first of them."""
    nodes = [
        helper.make_node("Reshape", ["x", "rlflow/shape_0"], ["rlflow/shape_1"]),
        helper.make_node("Neg", ["rlflow/shape_1"], ["y"]),
    ]
    survives(model(nodes, [floats("x", 2, 3)], [floats("y", 6)], weights={"rlflow/shape_0": np.array([6])}))
