"""A graph in a newer opset than its model's: the same model, or none."""

import logging

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser
from support.conformance.backend import case_of, load_tests
from support.kernels import same_values
from support.onnx_models import build_model, floats, interface

from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.onnx_io.opset_upgrade import upgraded
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.session import open_session, run

X, Y = floats("x", 2, 3), floats("y", None, None)
ONE = np.float32(1)


def unary(op: str, opset: int, **attributes: object) -> onnx.ModelProto:
    return build_model([helper.make_node(op, ["x"], ["y"], **attributes)], [X], [Y], opset=opset)


def branching(branch: onnx.NodeProto, opset: int) -> onnx.ModelProto:
    """A model whose node stands in both branches of an If, and reads from outside."""
    inner = [helper.make_graph([branch], "inner", [], [floats(branch.output[0], None, None)]) for _ in range(2)]
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    node = helper.make_node("If", ["c"], ["y"], then_branch=inner[0], else_branch=inner[1])
    return build_model([node], [condition, X], [Y], opset=opset)


def with_function(opset: int) -> onnx.ModelProto:
    imports = [helper.make_opsetid("", opset)]
    body = helper.make_node("Softmax", ["a"], ["b"], axis=0)
    function = helper.make_function("own", "F", ["a"], ["b"], [body], imports)
    node = helper.make_node("F", ["x"], ["y"], domain="own")
    return build_model([node], [X], [Y], opset=opset, domains=["own"], functions=[function])


UNDERSTOOD = {
    "axes become an operand": (unary("ReduceMean", 11, axes=[1]), 18),
    "axes from the front": (unary("Softmax", 11, axis=1), 13),
    "nothing changes": (unary("Relu", 9), 23),
}
CARRIED = {
    "the same in both": (unary("Abs", 9), 23),
    "new element types": (
        build_model([helper.make_node("Where", ["m", "x", "x"], ["y"])], [X], [Y], weights={"m": [True]}, opset=9),
        23,
    ),
    "inside a branch": (branching(helper.make_node("Abs", ["x"], ["z"]), 11), 23),
    "of another domain": (
        build_model(
            [helper.make_node("Gelu", ["x"], ["g"], domain="com.microsoft"), helper.make_node("Abs", ["g"], ["y"])],
            [X],
            [Y],
            opset=11,
            domains=["com.microsoft"],
        ),
        20,
    ),
}
UNSAFE = {
    "Softmax that flattens": (unary("Softmax", 11, axis=0), 13, "Softmax"),
    "Softmax of the old default": (unary("Softmax", 11), 13, "Softmax"),
    "a ratio that becomes an operand": (unary("Dropout", 11, ratio=0.5), 12, "Dropout"),
    "an operator that is gone": (
        build_model(
            [helper.make_node("Upsample", ["x", "s"], ["y"])], [X], [Y], weights={"s": np.float32([2, 2])}, opset=9
        ),
        10,
        "Upsample",
    ),
    "inside a branch": (branching(helper.make_node("Softmax", ["x"], ["z"], axis=0), 11), 13, "Softmax"),
    "a function": (with_function(11), 13, "it defines functions"),
    "no operator of ONNX's own": (
        parser.parse_model(
            """<ir_version: 8, opset_import: ["com.microsoft" : 1]>
            own (float[2, 3] x) => (float[2, 3] y) { y = com.microsoft.Gelu(x) }"""
        ),
        20,
        "it does not import ai.onnx",
    ),
}


@pytest.mark.parametrize("name", UNDERSTOOD | CARRIED)
def test_a_raised_model_is_the_same(name: str) -> None:
    """Of the same interface, with the same domains, and equal in outputs bit for bit; the first graph is left alone."""
    before, opset = (UNDERSTOOD | CARRIED)[name]
    before.doc_string, before.producer_name = "kept", "also kept"
    helper.set_model_props(before, {"key": "value"})
    graph = from_onnx(before)
    newer = upgraded(graph, opset)
    assert newer is not None
    after = to_onnx(newer)
    check_model(after)
    versions = {o.domain: o.version for o in before.opset_import} | {"": opset}
    assert {o.domain: o.version for o in after.opset_import} == versions
    assert interface(before) == interface(after)
    assert (after.doc_string, after.producer_name, after.metadata_props[0].value) == ("kept", "also kept", "value")
    feeds = draw_inputs(before, np.random.default_rng(0))
    outputs = [run(open_session(model, "as_written"), feeds)["y"] for model in (before, after)]
    assert same_values(*outputs)
    assert np.ptp(outputs[0]) > 0
    assert {o.domain: o.version for o in to_onnx(graph).opset_import} == versions | {"": graph.header.opset}


def test_the_examples_are_what_they_are_called() -> None:
    """Otherwise the tests would pass with an importer that carries everything, or nothing."""
    for examples, opaque in ((UNDERSTOOD, False), (CARRIED, True)):
        for model, _ in examples.values():
            graph = from_onnx(model)
            assert any(graph.nodes[i].is_opaque for i in graph.order) == opaque


@pytest.mark.parametrize("name", UNSAFE)
def test_what_may_mean_something_else_is_not_upgraded(name: str, caplog: pytest.LogCaptureFixture) -> None:
    model, opset, reason = UNSAFE[name]
    with caplog.at_level(logging.DEBUG, logger="rlflow.onnx_io.opset_upgrade"):
        assert upgraded(from_onnx(model), opset) is None
    assert reason in caplog.text


@pytest.mark.slow
def test_onnx_own_models_are_upgraded_or_left() -> None:
    """Models of one node of onnx that can be upgraded compute the same bit for bit: 997 of 1,023 in onnx 1.23."""
    models, wrong, done = 0, [], 0
    for case in filter(None, map(case_of, load_tests("node"))):
        graph = from_onnx(case.model)
        if not 7 <= graph.header.opset < 23:
            continue
        models += 1
        newer = upgraded(graph, 23)
        if newer is not None:
            session = open_session(to_onnx(newer), "as_written")
            done += 1
            if not all(same_values([*out.values()], [*run(session, feeds).values()]) for feeds, out in case.runs):
                wrong.append(case.name)
    assert wrong == []
    assert models > 900
    assert done > 0.95 * models
