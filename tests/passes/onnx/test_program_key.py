"""Keys are equal for what differs in names and order alone, and for nothing else."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, numpy_helper, parser

from rlflow.passes.onnx.normal_form import normal_form
from rlflow.passes.onnx.program_key import program_key

_HEAD = '<ir_version: 8, opset_import: ["" : 17]>\n'
ONE_RELU = "g (float[2] x, float[2] z) => (float[2] y) { a = Relu(x) b = Tanh(z) c = Add(a, a) y = Mul(c, b) }"
SAME = {
    "other names": "g (float[2] p, float[2] q) => (float[2] r) { s = Relu(p) t = Tanh(q) u = Add(s, s) r = Mul(u, t) }",
    "another order": "g (float[2] x, float[2] z) => (float[2] y) "
    "{ b = Tanh(z) a = Relu(x) c = Add(a, a) y = Mul(c, b) }",
}
OTHERS = {
    "two equal nodes": "g (float[2] x, float[2] z) => (float[2] y) "
    "{ a = Relu(x) d = Relu(x) b = Tanh(z) c = Add(a, d) y = Mul(c, b) }",
    "a dead node": "g (float[2] x, float[2] z) => (float[2] y) "
    "{ a = Relu(x) b = Tanh(z) c = Add(a, a) e = Abs(x) y = Mul(c, b) }",
    "operands the other way round": "g (float[2] x, float[2] z) => (float[2] y) "
    "{ a = Relu(x) b = Tanh(z) c = Add(a, a) y = Mul(b, c) }",
    "inputs the other way round": "g (float[2] z, float[2] x) => (float[2] y) "
    "{ a = Relu(x) b = Tanh(z) c = Add(a, a) y = Mul(c, b) }",
    "another size": "g (float[3] x, float[3] z) => (float[3] y) "
    "{ a = Relu(x) b = Tanh(z) c = Add(a, a) y = Mul(c, b) }",
}


def _key(text: str) -> str:
    return program_key(normal_form(parser.parse_model(_HEAD + text)))


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_names_and_order_do_not_count(text: str) -> None:
    assert _key(text) == _key(ONE_RELU)


@pytest.mark.parametrize("text", OTHERS.values(), ids=OTHERS)
def test_everything_else_counts(text: str) -> None:
    assert _key(text) != _key(ONE_RELU)


def test_who_reads_which_of_two_equal_nodes_counts() -> None:
    """Both have nodes of the same operands; only their readers tell them apart."""
    shared = "g (float[2] x) => (float[2] y, float[2] z) { a = Relu(x) b = Relu(x) y = Abs(a) z = Neg(a) }"
    split = "g (float[2] x) => (float[2] y, float[2] z) { a = Relu(x) b = Relu(x) y = Abs(a) z = Neg(b) }"

    assert _key(shared) != _key(split)


def test_what_a_graph_inside_of_a_node_captures_counts() -> None:
    text = """g (bool c, float[2] x) => (float[2] y) {{ a = Relu(x) b = Abs(x) y = If (c) <
        then_branch = t () => (float[2] p) {{ p = Neg({0}) }},
        else_branch = e () => (float[2] q) {{ q = Neg({1}) }} > }}"""

    assert len({_key(text.format(*names)) for names in ("ab", "ba", "aa", "bb")}) == 4


@given(st.lists(st.floats(-2, 2, width=32), min_size=2, max_size=2), st.booleans())
@settings(max_examples=30, deadline=None)
def test_the_content_of_weights_counts_and_its_encoding_does_not(values: list[float], raw: bool) -> None:
    first, second = _with_weight([1.5, -0.5], raw=True), _with_weight(values, raw=raw)
    equal = np.array(values, np.float32).tobytes() == np.array([1.5, -0.5], np.float32).tobytes()

    assert (program_key(first) == program_key(second)) == equal
    assert program_key(second) == program_key(_with_weight(values, raw=not raw))


def test_it_is_the_same_in_another_process() -> None:
    model = _with_weight([1.0, 2.0], raw=True)
    text = (
        "import sys, onnx; from rlflow.passes.onnx.program_key import program_key;"
        "print(program_key(onnx.load_from_string(bytes.fromhex(sys.argv[1]))))"
    )

    ran = subprocess.run(
        [sys.executable, "-c", text, model.SerializeToString().hex()], capture_output=True, text=True, check=True
    )

    assert ran.stdout.strip() == program_key(model)


def _with_weight(values: list[float], *, raw: bool) -> ModelProto:
    model = parser.parse_model(_HEAD + "g (float[2] x) => (float[2] y) { y = Add(x, w) }")
    array = np.array(values, np.float32)
    tensor = numpy_helper.from_array(array, "w")
    if not raw:
        tensor = onnx.TensorProto(name="w", data_type=1, dims=[2], float_data=array.tolist())
    model.graph.initializer.append(tensor)
    return model
