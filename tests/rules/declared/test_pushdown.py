"""Reading before computing: whole layers of a transformer shrink to the token that is read; and what must not move."""

from collections.abc import Callable
from random import Random

import numpy as np
import onnx
import pytest
from support.rewrites import applied, assert_same_outputs, graph_of, operators, read
from support.strategies import weight

from rlflow import zoo
from rlflow.equivalence.compare import compare
from rlflow.ir import Graph, Node, Ref
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.ops import registry
from rlflow.rules.declared import along_axis, pushdown, slices
from rlflow.rules.declared.catalogue import rules_of
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.verification import sampler

RULES = {rule.name: rule for rule in rules_of(pushdown, along_axis, slices)}
VIT = {"layers": 2, "hidden": 32, "heads": 4, "intermediate": 64, "patch": 4, "image": 16, "classes": 5}
TO_THE_END = 2**31 - 1


def exhausted(graph: Graph) -> Graph:
    """The first match of any rule, again and again until there is none: they all lead towards the inputs."""
    rewriter = Rewriter(list(RULES.values()))
    while matches := [match for found in rewriter.matches(graph) for match in found]:
        graph = rewriter.apply(graph, matches[0])
    return graph


def work(graph: Graph) -> dict[str, int]:
    """Floating-point operations by operator."""
    total: dict[str, int] = {}
    for node in (graph.nodes[i] for i in graph.order):
        kinds = [graph.type_of(r) for r in node.inputs if r is not None]
        total[node.op] = total.get(node.op, 0) + registry.flops(node, kinds)
    return total


@pytest.mark.parametrize(("batch", "layer_norm"), [(2, "fused"), ("n", "decomposed")])
def test_the_last_layer_of_a_vision_transformer_works_on_the_token_that_is_read(
    batch: int | str, layer_norm: str
) -> None:
    """17 tokens, one of which is read: of two layers' softmax the second has one row of 17 left, and of the twelve
    products of the blocks only the second layer's keys and values see all tokens. Not vacuous: the ratio is exact.
    """
    model = zoo.build("vit", **VIT, batch=batch, layer_norm=layer_norm)
    before = from_onnx(model)
    after = exhausted(before)
    exported = to_onnx(after)
    onnx.checker.check_model(exported)
    assert compare(model, exported).equivalent
    assert operators(after)["Gather"] == 0
    if batch == 2:
        assert work(after)["Softmax"] / work(before)["Softmax"] == pytest.approx((17 + 1) / (17 + 17))
        assert work(after)["Erf"] / work(before)["Erf"] == pytest.approx((17 + 1) / (17 + 17))


@pytest.mark.parametrize("index", [0, 2, -1, -2])
def test_a_single_element_becomes_a_slice_whichever_end_it_is_counted_from(index: int) -> None:
    def single(nodes: list[Node]) -> list[Ref]:
        x = read(nodes, "x", 2, 4, 3)
        nodes.append(weight(np.array(index), "i"))
        return [applied(nodes, "Relu", applied(nodes, "Gather", x, Ref(len(nodes) - 1), axis=-2))]

    before = graph_of(single)
    after = exhausted(before)
    assert operators(after) == {"Relu": 1, "Squeeze": 1, "Slice": 1} or operators(after) == operators(before)
    rewriter = Rewriter([RULES[f"gather-of-{'last' if index == -1 else 'one'}-to-slice"]])
    (match,) = rewriter.matches(before)[0]
    assert_same_outputs(before, rewriter.apply(before, match), np.random.default_rng(0))


def selected(selection: str, build: Callable[[list[Node], Ref], Ref], axis: int) -> Graph:
    """The first two elements along an axis of what is built from x (2, 4, 4)."""

    def whole(nodes: list[Node]) -> list[Ref]:
        result = build(nodes, read(nodes, "x", 2, 4, 4))
        if selection == "Slice":
            return [applied(nodes, "Slice", result, axes=(axis,), starts=(0,), ends=(2,), steps=(1,))]
        nodes.append(weight(np.array([0, 1]), "i"))
        return [applied(nodes, "Gather", result, Ref(len(nodes) - 1), axis=axis)]

    return graph_of(whole)


@pytest.mark.parametrize("selection", ["Slice", "Gather"])
@pytest.mark.parametrize(
    ("op", "attributes", "axis", "moves"),
    [
        ("Softmax", {}, -1, False),
        ("Softmax", {}, -2, True),
        ("Softmax", {"axis": -2}, -1, True),
        ("Softmax", {"axis": -2}, -2, False),
        ("ReduceMean", {"axes": (-1,)}, -2, True),
        ("ReduceMean", {"axes": (-3, -1)}, -2, True),
        ("Transpose", {"perm": (1, 2, 0)}, -1, True),
        ("Transpose", {"perm": (1, 2, 0)}, -2, True),
        ("Relu", {}, -1, True),
    ],
)
def test_a_selection_moves_past_what_does_not_look_along_its_axis(
    selection: str, op: str, attributes: dict[str, object], axis: int, moves: bool
) -> None:
    """One operator, one axis that it looks along and one that it does not: only the axis differs."""
    before = selected(selection, lambda nodes, x: applied(nodes, op, x, **attributes), axis)
    after = exhausted(before)
    assert after.nodes[after.outputs[0].node].op == (op if moves else selection)
    assert_same_outputs(before, after, np.random.default_rng(0))


def test_a_slice_stays_behind_what_others_read_whole() -> None:
    """The whole is computed anyhow: to compute the part again would add work."""

    def build(nodes: list[Node]) -> list[Ref]:
        whole = applied(nodes, "Relu", read(nodes, "x", 2, 4))
        part = applied(nodes, "Slice", whole, axes=(-1,), starts=(0,), ends=(2,), steps=(1,))
        return [part, applied(nodes, "Exp", whole)]

    assert not any(Rewriter(list(RULES.values())).matches(graph_of(build)))


def test_two_readers_of_one_part_share_it() -> None:
    """x and Tanh(x) are read alike: one slice is left, so that it moves on past the Relu that made x."""

    def gate(nodes: list[Node]) -> list[Ref]:
        x = applied(nodes, "Relu", read(nodes, "x", 2, 4))
        product = applied(nodes, "Mul", x, applied(nodes, "Tanh", x))
        return [applied(nodes, "Slice", product, axes=(-1,), starts=(1,), ends=(3,), steps=(1,))]

    before = graph_of(gate)
    after = exhausted(before)
    assert operators(after) == {"Slice": 1, "Relu": 1, "Tanh": 1, "Mul": 1}
    assert after.nodes[after.outputs[0].node].op == "Mul"
    assert_same_outputs(before, after, np.random.default_rng(0))


def test_indices_are_drawn_from_both_ends_of_the_axis() -> None:
    random = Random(0)
    rule = RULES["gather-before-columns"]
    least = most = 0
    for _ in range(30):
        drawn = sampler.draw(rule, random)
        size = drawn.shape("w")[-1]
        assert ((-size <= drawn.indices["i"]) & (drawn.indices["i"] < size)).all()
        least, most = (min(least, drawn.indices["i"].min()), max(most, drawn.indices["i"].max()))
    assert least < -1 < 1 < most


def test_nothing_is_gathered_by_numbers_that_are_not_whole() -> None:
    assert RULES["gather-before-relu"].indices == {"i"}
    assert not RULES["slice-before-relu"].indices
