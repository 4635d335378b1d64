"""Loop, If and Scan with values captured from outside, also when the captured value is rewritten; sequences and
optionals.
"""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.onnx_models import Build, Survives, floats

from rlflow.equivalence.compare import compare
from rlflow.errors import GraphError
from rlflow.ir import Graph, Ref, validate
from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.runtime.session import open_session, run

X = np.array([1, -2, 3], np.float32)


def _branch(name: str, captured: str, operator: str, inner: str = "") -> onnx.GraphProto:
    inner = inner or f"{name}_out"
    return helper.make_graph([helper.make_node(operator, [captured], [inner])], name, [], [floats(inner, 3)])


def _conditional(model: Build, *, outputs: tuple[str, ...] = ("y",), between: str = "Identity") -> onnx.ModelProto:
    """x -> neg -> t; If(c) reads t in both branches."""
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    nodes = [
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node(between, ["n"], ["t"]),
        helper.make_node(
            "If",
            ["c"],
            ["y"],
            then_branch=_branch("then", "t", "Abs"),
            else_branch=_branch("else", "t", "Relu"),
        ),
    ]
    return model(nodes, [condition, floats("x", 3)], [floats(o, 3) for o in outputs])


def _named(graph: Graph, name: str) -> Ref:
    return next(Ref(i, n.names.index(name)) for i, n in graph.nodes.items() if name in n.names)


@pytest.mark.parametrize("condition", [False, True])
def test_branches_read_outer_values(model: Build, survives: Survives, condition: bool) -> None:
    survives(_conditional(model), {"c": np.array(condition), "x": X})


@pytest.mark.parametrize("outputs", [("y",), ("y", "t"), ("t", "y"), ("n", "y", "t")])
def test_a_captured_value_is_replaced_by_another(model: Build, outputs: tuple[str, ...]) -> None:
    """The Identity goes; the branches, which know its value by name, must see its operand."""
    before = _conditional(model, outputs=outputs)
    graph = from_onnx(before)
    graph = graph.replace({}, {_named(graph, "t"): _named(graph, "n")})
    validate(graph)
    after = to_onnx(graph)
    check_model(after)
    for condition in (False, True):
        feeds = {"c": np.array(condition), "x": X}
        expected, actual = (run(open_session(m, "as_written"), feeds) for m in (before, after))
        assert all(np.array_equal(expected[n], actual[n]) for n in outputs)


def test_a_captured_value_is_replaced_by_a_weight_that_is_an_output(model: Build) -> None:
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    branches = {f"{b}_branch": _branch(b, "w", o) for b, o in (("then", "Abs"), ("else", "Relu"))}
    nodes = [helper.make_node("If", ["c"], ["y"], **branches)]
    before = model(nodes, [condition], [floats("w", 3), floats("y", 3)], weights={"w": X})
    after = to_onnx(from_onnx(before))
    check_model(after)
    assert compare(before, after).equivalent


def test_folded_captures(model: Build, survives: Survives) -> None:
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    branches = {f"{b}_branch": _branch(b, "k", o) for b, o in (("then", "Abs"), ("else", "Relu"))}
    nodes = [helper.make_node("Neg", ["w"], ["k"]), helper.make_node("If", ["c"], ["y"], **branches)]
    after = survives(model(nodes, [condition], [floats("y", 3)], weights={"w": X}), {"c": np.array(True)})
    assert [n.op_type for n in after.graph.node] == ["If"]


def test_the_same_names_in_sibling_subgraphs(model: Build, survives: Survives) -> None:
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])

    def both(captured: str) -> dict[str, onnx.GraphProto]:
        return {f"{b}_branch": _branch(b, captured, o, "same") for b, o in (("then", "Abs"), ("else", "Relu"))}

    nodes = [helper.make_node("If", ["c"], ["t"], **both("x")), helper.make_node("If", ["c"], ["y"], **both("t"))]
    survives(model(nodes, [condition, floats("x", 3)], [floats("y", 3)]), {"c": np.array(False), "x": X})


def test_an_outer_value_does_not_take_a_name_from_inside(model: Build) -> None:
    """Valid as long as the outer value comes later; export orders the nodes anew."""
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    branches = {f"{b}_branch": _branch(b, "x", o, "inner") for b, o in (("then", "Abs"), ("else", "Relu"))}
    nodes = [
        helper.make_node("If", ["c"], ["i"], **branches),
        helper.make_node("Neg", ["x"], ["inner"]),
        helper.make_node("Sub", ["inner", "i"], ["y"]),
    ]
    inputs = [condition, floats("x", 3)]
    before = helper.make_model(
        helper.make_graph(nodes, "g", inputs, [floats("y", 3)]),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=10,
    )
    after = to_onnx(from_onnx(before))
    check_model(after)
    outer = [n for n in after.graph.node if n.op_type == "Neg"]
    assert list(outer[0].output) != ["inner"]
    assert np.array_equal(
        run(open_session(after, "as_written"), {"c": np.array(False), "x": X})["y"], -X - np.maximum(X, 0)
    )


def test_two_values_that_want_one_name_are_refused(model: Build) -> None:
    """A graph that no edit of ours makes: an outer value named as a capture of another value."""
    graph = from_onnx(_conditional(model, outputs=("y", "t")))
    conditional = next(i for i, n in graph.nodes.items() if n.op == "If")
    node = graph.nodes[conditional]
    moved = node.with_inputs(tuple(_named(graph, "n") if r == _named(graph, "t") else r for r in node.inputs))
    broken = type(graph)(
        {**graph.nodes, conditional: moved},
        graph.inputs,
        tuple(reversed(graph.outputs)),
        tuple(reversed(graph.output_names)),
        graph.consumers,
        graph.header,
        graph.next_id,
    )
    with pytest.raises(GraphError, match="two values want the name 't'"):
        to_onnx(broken)


def _nested_loop() -> onnx.NodeProto:
    """A Loop whose body holds an If that captures values from two levels up."""
    branches = {
        "then_branch": _branch("then", "state", "Neg"),
        "else_branch": helper.make_graph(
            [helper.make_node("Add", ["state", "outer"], ["else_out"])], "else", [], [floats("else_out", 3)]
        ),
    }
    scalar = [helper.make_tensor_value_info(n, k, []) for n, k in (("i", TensorProto.INT64), ("go", TensorProto.BOOL))]
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["go_on"]),
            helper.make_node("Cast", ["i"], ["odd"], to=TensorProto.BOOL),
            helper.make_node("If", ["odd"], ["next"], **branches),
        ],
        "body",
        [*scalar, floats("state", 3)],
        [helper.make_tensor_value_info("go_on", TensorProto.BOOL, []), floats("next", 3)],
    )
    return helper.make_node("Loop", ["trips", "", "x"], ["y"], body=body)


def test_loops_with_captures_two_levels_deep(model: Build, survives: Survives) -> None:
    nodes = [helper.make_node("Exp", ["x"], ["outer"]), _nested_loop()]
    before = model(nodes, [floats("x", 3)], [floats("y", 3)], weights={"trips": np.array(4)})
    survives(before, {"x": X})
    graph = from_onnx(before)
    loop = next(n for n in graph.nodes.values() if n.op == "Loop")
    assert _named(graph, "outer") in loop.inputs


def test_scan(model: Build, survives: Survives) -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "e"], ["t"]), helper.make_node("Mul", ["t", "w"], ["o"])],
        "body",
        [floats("s"), floats("e")],
        [floats("t"), floats("o")],
    )
    node = helper.make_node("Scan", ["zero", "x"], ["last", "y"], body=body, num_scan_inputs=1)
    weights = {"zero": np.float32(0), "w": np.float32(2)}
    survives(model([node], [floats("x", 3)], [floats("last"), floats("y", 3)], weights=weights), {"x": X})


def test_sequences(model: Build, survives: Survives) -> None:
    nodes = [
        helper.make_node("Neg", ["x"], ["n"]),
        helper.make_node("SequenceConstruct", ["x", "n"], ["s"]),
        helper.make_node("SequenceAt", ["s", "one"], ["y"]),
    ]
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [3])
    before = model(nodes, [floats("x", 3)], [floats("y", 3), sequence], weights={"one": np.array(1)})
    graph = from_onnx(before)
    assert graph.type_of(_named(graph, "s")) is None
    survives(before, {"x": X})


def test_a_sequence_as_input(model: Build, survives: Survives) -> None:
    sequence = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, [3])
    nodes = [helper.make_node("ConcatFromSequence", ["s"], ["y"], axis=0)]
    survives(model(nodes, [sequence], [floats("y", None)]), {"s": [X, -X]})


def test_optionals(model: Build, survives: Survives) -> None:
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [3]))
    nodes = [
        helper.make_node("Optional", ["x"], ["o"]),
        helper.make_node("OptionalGetElement", ["o"], ["g"]),
        helper.make_node("Neg", ["g"], ["y"]),
    ]
    before = model(nodes, [floats("x", 3)], [floats("y", 3), helper.make_value_info("o", kind)])
    survives(before, {"x": X})
