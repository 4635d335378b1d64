"""A graph in a newer opset than its model's: the same model, or none."""

import logging
from collections import Counter
from datetime import date
from math import ceil

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, parser
from support.conformance.backend import case_of, load_tests
from support.conformance.guarded_process import GuardedProcess
from support.kernels import same_values
from support.onnx_models import build_model, floats, interface
from support.opset_changes.models import Key, fate_of, keys
from support.repository import REPOSITORY
from support.rotating_sample import sample, turn

from rlflow.errors import RLFlowError
from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.onnx_io.opset_upgrade import upgraded
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.session import open_session, run

TODAY = turn(REPOSITORY, date.today())
FRESH = 20_000_000
X, Y = floats("x", 2, 3), floats("y", None, None)
WEIGHTS = {
    "grid": np.random.default_rng(0).uniform(-1, 1, (5, 3, 3, 2)).astype(np.float32),
    "regions": np.float32([[0, 0, 3, 3], [1, 1, 4, 4]]),
    "images": np.int64([0, 1]),
    "step": np.float32(0.25),
    "zero": np.uint8(128),
}


def unary(op: str, opset: int, **attributes: object) -> onnx.ModelProto:
    return build_model([helper.make_node(op, ["x"], ["y"], **attributes)], [X], [Y], opset=opset)


def branching(branch: onnx.NodeProto, opset: int) -> onnx.ModelProto:
    """A model whose node stands in both branches of an If, and reads from outside."""
    inner = [helper.make_graph([branch], "inner", [], [floats(branch.output[0], None, None)]) for _ in range(2)]
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    node = helper.make_node("If", ["c"], ["y"], then_branch=inner[0], else_branch=inner[1])
    return build_model([node], [condition, X], [Y], opset=opset)


def with_function(opset: int, body: onnx.NodeProto) -> onnx.ModelProto:
    """A model that calls a function of its own, which has one node."""
    imports = [helper.make_opsetid("", opset)]
    function = helper.make_function("own", "F", ["a"], ["b"], [body], imports)
    node = helper.make_node("F", ["x"], ["y"], domain="own")
    return build_model([node], [X], [Y], opset=opset, domains=["own"], functions=[function])


def of_rank(rank: int, op: str, opset: int, *others: str, **attributes: object) -> onnx.ModelProto:
    """A model of one node whose first input has so many axes of sizes 2, 3, 4, ...; the others are weights."""
    inputs, weights = ["x", *others], {name: WEIGHTS[name] for name in others}
    element = TensorProto.UINT8 if op == "QuantizeLinear" else TensorProto.FLOAT
    y = helper.make_tensor_value_info("y", element, [None] * rank)
    node = helper.make_node(op, inputs, ["y"], **attributes)
    return build_model([node], [floats("x", *range(rank + 1, 1, -1))], [y], weights=weights, opset=opset)


def half_clipped(opset: int, operands: str, **bounds: float) -> onnx.ModelProto:
    """A Clip of float16, with a bound that is left out."""
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT16, [2, 3]) for name in "xy")
    node, weights = helper.make_node("Clip", operands.split(), ["y"], **bounds), {"low": np.float16(-0.5)}
    return build_model([node], [x], [y], weights=weights if "low" in operands else {}, opset=opset)


UNDERSTOOD = {
    "axes become an operand": (unary("ReduceMean", 11, axes=[1]), 18),
    "axes from the front": (unary("Softmax", 11, axis=1), 13),
    "nothing changes": (unary("Relu", 9), 23),
    "a step for all": (of_rank(3, "QuantizeLinear", 10, "step", "zero"), 23),
}
CARRIED = {
    "the same in both": (unary("Abs", 9), 23),
    "new element types": (
        build_model([helper.make_node("Where", ["m", "x", "x"], ["y"])], [X], [Y], weights={"m": [True]}, opset=9),
        23,
    ),
    "inside a branch": (branching(helper.make_node("Abs", ["x"], ["z"]), 11), 23),
    "Softmax of the old default, which is the last": (unary("Softmax", 11), 13),
    "Hardmax of the last axis": (of_rank(3, "Hardmax", 12, axis=-1), 23),
    "LogSoftmax of the last axis, from the front": (of_rank(4, "LogSoftmax", 11, axis=3), 17),
    "Hardmax of the last axis in a branch": (branching(helper.make_node("Hardmax", ["x"], ["z"], axis=-1), 11), 17),
    "a mode by default": (of_rank(4, "GridSample", 16, "grid"), 20),
    "a transform along the last axis but one": (of_rank(3, "DFT", 17), 20),
    "in a function": (with_function(11, helper.make_node("Abs", ["a"], ["b"])), 17),
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
    "Softmax of the old default": (of_rank(3, "Softmax", 11), 13, "Softmax"),
    "a ratio that becomes an operand": (unary("Dropout", 11, ratio=0.5), 12, "Dropout"),
    "an operator that is gone": (
        build_model(
            [helper.make_node("Upsample", ["x", "s"], ["y"])], [X], [Y], weights={"s": np.float32([2, 2])}, opset=9
        ),
        10,
        "Upsample",
    ),
    "inside a branch": (branching(helper.make_node("Softmax", ["x"], ["z"], axis=0), 11), 13, "Softmax"),
    "in a function": (with_function(11, helper.make_node("Softmax", ["a"], ["b"], axis=0)), 13, "Softmax"),
    "Hardmax that flattens": (of_rank(3, "Hardmax", 12), 13, "Hardmax"),
    "Hardmax that flattens, of another axis": (of_rank(4, "Hardmax", 9, axis=2), 17, "Hardmax"),
    "LogSoftmax that flattens": (of_rank(3, "LogSoftmax", 10, axis=1), 13, "LogSoftmax"),
    "Hardmax in a branch": (branching(helper.make_node("Hardmax", ["x"], ["z"], axis=0), 12), 13, "Hardmax"),
    "Hardmax in a function": (with_function(12, helper.make_node("Hardmax", ["a"], ["b"], axis=0)), 13, "Hardmax"),
    "a mode by its old name": (of_rank(4, "GridSample", 16, "grid", mode="bilinear"), 20, "GridSample"),
    "a transform whose axis is counted otherwise": (of_rank(4, "DFT", 17), 20, "DFT"),
    "regions half a pixel on": (
        of_rank(4, "RoiAlign", 10, "regions", "images", output_height=2, output_width=2),
        16,
        "RoiAlign",
    ),
    "a bound left out, which is that of float32": (half_clipped(7, "x", max=0.5), 11, "Clip"),
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


@pytest.mark.parametrize("name", sorted(set(UNSAFE) - {"no operator of ONNX's own"}))
def test_what_is_not_upgraded_would_not_run_or_compute_something_else(name: str) -> None:
    """So that nothing is refused here without a need."""
    model, opset, _ = UNSAFE[name]
    feeds = draw_inputs(model, np.random.default_rng(0))
    expected = run(open_session(model, "as_written"), feeds)["y"]
    newer = onnx.ModelProto()
    newer.CopyFrom(model)
    for holder in (newer, *newer.functions):
        holder.opset_import[0].version = opset
    try:
        found = run(open_session(newer, "as_written"), feeds)["y"]
    except RLFlowError:
        return
    assert not same_values(expected, found)


def test_a_clip_of_half_precision_that_leaves_out_a_bound_is_not_upgraded() -> None:
    """Up to opset 11, infinity passes: the bound is the end of float32. Not vacuous: later, it does not pass."""
    model, feeds = half_clipped(11, "x low"), {"x": np.full((2, 3), np.inf, np.float16)}
    assert upgraded(from_onnx(model), 23) is None
    assert np.isinf(run(open_session(model, "as_written"), feeds)["y"]).all()
    model.opset_import[0].version = 12
    assert np.isfinite(run(open_session(model, "as_written"), feeds)["y"]).all()


def fates(keys: list[Key]) -> Counter[str]:
    """What became of drawn nodes of each operator as models of their own; it is asserted that none is another."""
    found: Counter[str] = Counter()
    with GuardedProcess(fate_of) as process:
        for key in keys:
            fate = process(key)
            assert fate in ("same", "left", "") or fate.startswith(("crash", "hang")), (key, fate)
            found[fate] += 1
    return found


def test_drawn_nodes_are_upgraded_or_left() -> None:
    """Those that are understood and written otherwise as well as those that are carried; other ones for each commit."""
    found = fates(sample(keys(range(TODAY, TODAY + 1)), TODAY, 50))
    assert found["same"] > 10


@pytest.mark.fuzz
def test_all_drawn_nodes_are_upgraded_or_left() -> None:
    """The same of forty for each version of each operator; some are left."""
    found = fates(keys(range(FRESH, FRESH + 40)))
    assert found["same"] > 4000
    assert found["left"] > 300


def test_onnx_own_models_are_upgraded_or_left() -> None:
    """Models of one node of onnx that can be upgraded compute the same bit for bit: 997 of 1,023 in onnx 1.23, of which
    four commits in a row reach all.
    """
    models, wrong, done = 0, [], 0
    tests = load_tests("node")
    for case in filter(None, map(case_of, sample(tests, TODAY, ceil(len(tests) / 4)))):
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
    assert models > 200
    assert done > 0.9 * models
