"""A program's nodes are written as its outputs need them, whatever the order was in which a pass left them."""

from __future__ import annotations

import random

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, parser

from rlflow.passes.onnx import dataset
from rlflow.passes.onnx.actions import STANDARD
from rlflow.passes.onnx.backend import OnnxBackend
from rlflow.passes.onnx.node_order import in_order
from rlflow.passes.onnx.normal_form import normal_form
from rlflow.passes.onnx.program_key import program_key

_HEAD = '<ir_version: 10, opset_import: ["" : 17]>\n'


def _nodes(text: str) -> list[str]:
    model = parser.parse_model(_HEAD + text)
    in_order(model.graph)
    onnx.checker.check_model(model)
    return [node.output[0] for node in model.graph.node]


def test_operands_come_before_and_in_their_order() -> None:
    text = "g (float[2] x) => (float[2] y) { c = Abs(x) b = Tanh(x) a = Relu(x) d = Add(b, a) y = Mul(d, c) }"
    assert _nodes(text) == ["b", "a", "d", "c", "y"]


def test_what_the_first_output_needs_comes_first_and_what_nobody_needs_comes_last() -> None:
    text = "g (float[2] x) => (float[2] y, float[2] z) { dead = Abs(x) a = Relu(x) z = Neg(a) y = Tanh(x) }"
    assert _nodes(text) == ["y", "a", "z", "dead"]


def test_a_deep_network_is_no_matter() -> None:
    chain = "".join(f"v{number + 1} = Relu(v{number}) " for number in range(5000))
    assert len(_nodes(f"g (float[2] v0) => (float[2] v5000) {{ {chain} }}")) == 5000


def test_a_graph_inside_counts_by_what_it_reads() -> None:
    text = """g (bool c, float[2] x) => (float[2] y) {
        late = Tanh(x)
        a = Relu(x)
        y = If (c) <then_branch = t () => (float[2] p) { p = Neg(a) },
                    else_branch = e () => (float[2] q) { q = Abs(a) }>
    }"""
    assert _nodes(text) == ["a", "y", "late"]


@pytest.mark.parametrize("address", ["detours/gpt2?layers=1", "detours/nasrnn?steps=2", "zoo/bert?layers=1"])
@settings(max_examples=20)
@given(seed=st.integers(0, 2**16))
def test_every_order_becomes_the_same(address: str, seed: int) -> None:
    """And there is something to do: what is given has another order than what comes out."""
    start = normal_form(dataset.read(address))
    given_order, shuffled = _shuffled(start, random.Random(seed))
    assert given_order != [node.output[0] for node in start.graph.node]
    again = normal_form(shuffled)
    assert program_key(again) == program_key(start)
    assert again.SerializeToString() == start.SerializeToString()


def _shuffled(model: ModelProto, rng: random.Random) -> tuple[list[str], ModelProto]:
    """Write the nodes and the weights in another order that is as good."""
    other = ModelProto()
    other.CopyFrom(model)
    waiting, known = list(model.graph.node), {name for node in model.graph.node for name in node.output}
    order: list[NodeProto] = []
    while waiting:
        ready = [node for node in waiting if not known.intersection(node.input)]
        chosen = rng.choice(ready)
        waiting.remove(chosen)
        known.difference_update(chosen.output)
        order.append(chosen)
    weights = list(model.graph.initializer)
    rng.shuffle(weights)
    del other.graph.node[:], other.graph.initializer[:], other.graph.value_info[:]
    other.graph.node.extend(order)
    other.graph.initializer.extend(weights)
    return [node.output[0] for node in order], other


def test_a_pass_makes_the_same_of_every_order() -> None:
    """By itself, ONNX Runtime's pass fuses one or the other of two products that are added, by their order."""
    body = {"first": "m = MatMul(x, v)", "second": "n = MatMul(x, w)"}
    makes = {order: f"{body[order[0]]} {body[order[1]]}" for order in (("first", "second"), ("second", "first"))}
    fused = set()
    unordered = set()
    for products in makes.values():
        text = f"g (float[2,2] x, float[2,2] v, float[2,2] w) => (float[2,2] y) {{ {products} y = Add(m, n) }}"
        model = parser.parse_model(_HEAD + text)
        unordered.add(program_key(STANDARD["onnxruntime:MatMulAddFusion"](model)))
        backend = OnnxBackend()
        start = backend.load(model.SerializeToString())
        fused.add(backend.apply(start.payload, "onnxruntime:MatMulAddFusion").facts.key)
    assert len(unordered) == 2, "the pass depends on the order"
    assert len(fused) == 1
