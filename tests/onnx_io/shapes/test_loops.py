"""What a Loop carries is typed where an iteration provably keeps its type, and only there."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.onnx_models import Build, floats

from rlflow import zoo
from rlflow.equivalence.compare import compare
from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.onnx_io.shapes.inference import infer_types
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.session import open_session, run

INPUTS = [helper.make_tensor_value_info(n, t, []) for n, t in (("i", TensorProto.INT64), ("c", TensorProto.BOOL))]
GO_ON = helper.make_tensor_value_info("go_on", TensorProto.BOOL, [])
TRIPS = {"trips": np.int64(3), "true": np.array(True)}


def _loop(
    nodes: list[onnx.NodeProto],
    carried: dict[str, tuple[str, tuple[int | str, ...]]],
    outputs: list[str],
    scanned: str = "",
) -> onnx.NodeProto:
    """Carries what is called `v` inside, begins as `x` and ends an iteration as `w` for v: ("w", declared shape)."""
    body = helper.make_graph(
        [helper.make_node("Identity", ["c"], ["go_on"]), *nodes],
        "body",
        [*INPUTS, *(floats(name, *shape) for name, (_, shape) in carried.items())],
        [
            GO_ON,
            *(floats(w, *shape) for w, shape in carried.values()),
            *([floats(scanned, "a", "b")] if scanned else []),
        ],
    )
    return helper.make_node("Loop", ["trips", "true", *(f"{name}_0" for name in carried)], outputs, body=body)


def _types(model: onnx.ModelProto, *names: str) -> list[str]:
    types = infer_types(model)
    return [str(types[name]) for name in names]


def test_a_state_that_keeps_its_shape(model: Build) -> None:
    """Of the values scanned, all dimensions but the number of iterations are known, too."""
    nodes = [helper.make_node("MatMul", ["v", "r"], ["w"]), helper.make_node("Transpose", ["w"], ["s"])]
    loop = _loop(nodes, {"v": ("w", (4, 8))}, ["end", "trace"], "s")
    inner = [loop, helper.make_node("Relu", ["end"], ["y"]), helper.make_node("Relu", ["trace"], ["z"])]
    weights = {**TRIPS, "r": np.eye(8, dtype=np.float32)}
    before = model(inner, [floats("v_0", 4, 8)], [floats("y", 4, 8), floats("z", 3, 8, 4)], weights=weights)
    assert _types(before, "end", "trace") == ["float32[4, 8]", "float32[unk__0, 8, 4]"]


@pytest.mark.parametrize("declared", [(4,), ("k",)])
def test_a_state_that_grows_has_no_shape(model: Build, declared: tuple[int | str, ...]) -> None:
    """Whatever the body declares: after three iterations there are 4 + 3 * 2 elements."""
    loop = _loop([helper.make_node("Concat", ["v", "two"], ["w"], axis=0)], {"v": ("w", declared)}, ["end"])
    nodes = [loop, helper.make_node("Relu", ["end"], ["y"])]
    weights = {**TRIPS, "two": np.ones(2, np.float32)}
    before = model(nodes, [floats("v_0", 4)], [floats("y", "n")], weights=weights)
    assert _types(before, "end") == ["float32[*]"]
    if declared == ("k",):  # the other is a lie, which ONNX Runtime does not run
        assert run(open_session(before, "as_written"), {"v_0": np.ones(4, np.float32)})["y"].shape == (10,)


def test_a_state_that_turns_has_no_shape(model: Build) -> None:
    loop = _loop([helper.make_node("Transpose", ["v"], ["w"])], {"v": ("w", ("a", "b"))}, ["end"])
    nodes = [loop, helper.make_node("Relu", ["end"], ["y"])]
    for shape, told in (((2, 3), "float32[*]"), ((3, 3), "float32[3, 3]"), (("n", "n"), "float32[n, n]")):
        before = model(nodes, [floats("v_0", *shape)], [floats("y", "p", "q")], weights=TRIPS)
        assert _types(before, "end") == [told]


def test_states_that_follow_a_growing_one_are_dropped_one_after_another(model: Build) -> None:
    """u takes v's shape, v takes g's, and g grows; h keeps its own."""
    nodes = [
        helper.make_node("Identity", ["v"], ["u1"]),
        helper.make_node("Identity", ["g"], ["v1"]),
        helper.make_node("Concat", ["g", "g"], ["g1"], axis=0),
        helper.make_node("Neg", ["h"], ["h1"]),
    ]
    carried: dict[str, tuple[str, tuple[int | str, ...]]] = {n: (f"{n}1", (f"{n}n",)) for n in "uvgh"}
    loop = _loop(nodes, carried, ["u", "v", "g", "h"])
    ends = [helper.make_node("Relu", [n], [f"{n}y"]) for n in "uvgh"]
    begins, results = [floats(f"{n}_0", 4) for n in "uvgh"], [floats(f"{n}y", None) for n in "uvgh"]
    before = model([loop, *ends], begins, results, weights=TRIPS)
    assert _types(before, *"uvgh") == ["float32[*]"] * 3 + ["float32[4]"]
    outputs = run(open_session(before, "as_written"), {f"{n}_0": np.ones(4, np.float32) for n in "uvgh"})
    assert [outputs[f"{n}y"].shape for n in "uvgh"] == [(8,), (16,), (32,), (4,)]


def test_a_loop_that_begins_with_what_another_ends_with(model: Build) -> None:
    first = _loop([helper.make_node("Neg", ["v"], ["w"])], {"v": ("w", ("k",))}, ["m_0"])
    second = _loop([helper.make_node("Abs", ["m"], ["n"])], {"m": ("n", ("k",))}, ["end"])
    nodes = [first, second, helper.make_node("Relu", ["end"], ["y"])]
    before = model(nodes, [floats("v_0", "batch", 4)], [floats("y", "batch", 4)], weights=TRIPS)
    assert _types(before, "m_0", "end") == ["float32[batch, 4]"] * 2


def test_what_follows_the_loop_of_the_zoo_is_rewritten() -> None:
    """Two products with weights, one after the other, become one: for that the first operand must be a matrix."""
    before = zoo.build("loop")
    rewriter = Rewriter(library.load().rules)
    graph = from_onnx(before)
    (loop,) = (i for i, node in graph.nodes.items() if node.op == "Loop")
    behind = [m for matches in rewriter.matches(graph) for m in matches if {*graph.consumers[loop]} & {*m.nodes}]
    assert behind
    for match in behind:
        after = to_onnx(rewriter.apply(graph, match))
        check_model(after)
        report = compare(before, after)
        assert report.equivalent
        assert report.non_vacuous_draws
