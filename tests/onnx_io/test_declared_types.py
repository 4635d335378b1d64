"""Types that a model declares for values inside it: kept where these live on, and gone where they would be untrue."""

import numpy as np
import onnx
import pytest
from onnx import GraphProto, ModelProto, TensorProto, ValueInfoProto, helper
from support.onnx_models import build_model, floats
from support.zoo_names import SMALL

from rlflow import zoo
from rlflow.onnx_io import check_model, from_onnx, to_onnx
from rlflow.onnx_io.subgraphs import subgraphs, with_subgraphs
from rlflow.rules.library import load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.session import fused_model, open_session, run

REWRITES = 12


def _chain(*declared: ValueInfoProto, inputs: tuple[ValueInfoProto, ...] = (floats("x", 2, 3),)) -> ModelProto:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Hardmax", ["a"], ["b"]),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    return build_model(nodes, inputs, [floats("y", None, None)], value_info=declared)


def _declared(graph: GraphProto) -> dict[str, ValueInfoProto]:
    return {value.name: value for value in graph.value_info}


@pytest.mark.parametrize("name", ["conv", "loop", "mlp", "t5_decoder"])
def test_all_values_that_live_on_keep_theirs_through_random_rewrites(name: str) -> None:
    """Folded ones, too. And none of another type is declared: ONNX's strict inference finds no contradiction."""
    before = onnx.shape_inference.infer_shapes(zoo.build(name, **SMALL.get(name, {})))
    graph, rewriter, rng = from_onnx(before), Rewriter(load().rules), np.random.default_rng(0)
    for _ in range(REWRITES):
        matches = rewriter.matches(graph)
        rules = [rule for rule, count in enumerate(matches.counts) if count]
        if not rules:
            break
        rule = rules[int(rng.integers(len(rules)))]
        graph = rewriter.apply(graph, matches[rule][int(rng.integers(matches.counts[rule]))])
    after = to_onnx(graph)
    onnx.shape_inference.infer_shapes(after, check_type=True, strict_mode=True)
    told, values = _declared(before.graph), {name for node in after.graph.node for name in node.output}
    values |= {tensor.name for tensor in after.graph.initializer}
    assert _declared(after.graph) == {name: value for name, value in told.items() if name in values}
    assert after.graph.value_info


def test_what_is_declared_of_a_custom_operator_is_kept_as_nothing_else_tells_it() -> None:
    nodes = [helper.make_node("Own", ["x"], ["a"], domain="own"), helper.make_node("Relu", ["a"], ["y"])]
    documented = floats("a", 2, "columns")
    documented.doc_string = "kept"
    before = build_model(
        nodes, [floats("x", 2, 3)], [floats("y", 2, "columns")], value_info=[documented], domains=["own"]
    )
    assert list(to_onnx(from_onnx(before)).graph.value_info) == [documented]


@pytest.mark.parametrize(
    ("declared", "kept"),
    [
        (floats("a", 2, 3), True),
        (floats("a", 2, "n"), True),
        (floats("a", None, 3), True),
        (floats("a"), False),  # a scalar
        (helper.make_tensor_value_info("a", TensorProto.FLOAT, None), True),
        (floats("gone", 2, 3), False),
        (floats("rlflow/relu_0", 2, 3), False),
    ],
)
def test_only_what_is_true_is_declared(declared: ValueInfoProto, kept: bool) -> None:
    after = to_onnx(from_onnx(_chain(declared)))
    check_model(after)
    assert list(after.graph.value_info) == ([declared] if kept else [])


def test_a_number_that_was_left_in_when_the_input_became_dynamic_is_not_declared_again() -> None:
    """The same number is kept where the size is pinned to it, and not where it is pinned to another."""
    stale = _chain(floats("a", 2, 3), floats("b", "rows", 3), inputs=(floats("x", "rows", 3),))
    told = {size: list(_declared(to_onnx(from_onnx(stale, sizes)).graph)) for size, sizes in _PINS.items()}
    assert told == {0: ["b"], 2: ["a", "b"], 5: ["b"]}
    pinned = _declared(to_onnx(from_onnx(stale, {"rows": 5})).graph)
    assert pinned["b"] == floats("b", 5, 3)


_PINS = {0: {}, 2: {"rows": 2}, 5: {"rows": 5}}


def test_a_new_value_never_takes_the_name_of_one_that_is_declared_and_gone() -> None:
    """A parameter of an operator gets a fresh name: `rlflow/axes_0`, had the model not declared floats under it."""
    weights = {"axes": np.array([0])}
    nodes = [helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=1)]
    before = build_model(
        nodes, [floats("x", 2, 3)], [floats("y", 1, 3)], weights=weights, value_info=[floats("rlflow/axes_0", 2, 3)]
    )
    after = to_onnx(from_onnx(before))
    assert [tensor.name for tensor in after.graph.initializer] == ["rlflow/axes_1"]
    assert not after.graph.value_info


def _branching() -> ModelProto:
    """A branch with two transpositions that cancel, and declared types of which one is of the first of these."""
    turns = [
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("Transpose", ["t"], ["u"], perm=[1, 0]),
        helper.make_node("Relu", ["u"], ["r"]),
        helper.make_node("Exp", ["r"], ["e"]),
    ]
    declared = [floats("t", 3, 2), floats("u", 2, 3), floats("r", 2, 3)]
    branch = helper.make_graph(turns, "then", [], [floats("e", 2, 3)], value_info=declared)
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["n"])], "else", [], [floats("n", 2, 3)])
    node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=other)
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    return build_model([node], [condition, floats("x", 2, 3)], [floats("y", 2, 3)])


def _then(model: ModelProto) -> GraphProto:
    return next(a.g for node in model.graph.node for a in node.attribute if a.name == "then_branch")


def test_a_branch_that_is_carried_keeps_what_it_declares() -> None:
    assert list(_declared(_then(to_onnx(from_onnx(_branching()))))) == ["t", "u", "r"]


def test_a_branch_that_is_rewritten_keeps_what_lives_on() -> None:
    model = _branching()
    inner = next(found for found in subgraphs(model) if found.attribute == "then_branch")
    rewriter = Rewriter([rule for rule in load().rules if rule.name == "transpose-transpose"] or load().rules)
    graph = from_onnx(inner.model)
    while graph.order and any(graph.nodes[i].op == "Transpose" for i in graph.order):
        matches = rewriter.matches(graph)
        after = (rewriter.apply(graph, match) for found in matches if found for match in found)
        graph = min(after, key=lambda found: sum(found.nodes[i].op == "Transpose" for i in found.order))
    changed = with_subgraphs(model, {inner.place: to_onnx(graph)})
    check_model(changed)
    assert list(_declared(_then(changed)).values()) == [floats("r", 2, 3)]
    feeds = {"c": np.array(True), "x": np.arange(6, dtype=np.float32).reshape(2, 3)}
    assert np.array_equal(*(run(open_session(m, "as_written"), feeds)["y"] for m in (model, changed)))


def test_onnx_runtime_takes_what_is_declared() -> None:
    """It merges declared types with its own, and refuses a model where they contradict each other."""
    assert fused_model(to_onnx(from_onnx(_chain(floats("a", 2, 3), floats("b", 2, 3))))).graph.node
