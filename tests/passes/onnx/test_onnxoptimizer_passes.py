"""The passes of onnxoptimizer, run alone, do what they are named after; together they do more."""

from __future__ import annotations

import onnx
import pytest
from support.onnx_passes import assert_leaves

from rlflow import zoo
from rlflow.equivalence.compare import compare
from rlflow.passes.onnx.detours import with_detours
from rlflow.passes.onnx.normal_form import normal_form
from rlflow.passes.onnx.onnxoptimizer_passes import PASSES, default_run

HEAD = '<ir_version: 10, opset_import: ["" : 17]>\n'
X = "g (float[2,3] x) => (float[2,3] y) "

EXPECTED = {
    "eliminate_identity": (X + "{ a = Identity(x) y = Relu(a) }", ["Relu"]),
    "eliminate_nop_cast": (X + "{ a = Cast <to = 1> (x) y = Relu(a) }", ["Relu"]),
    "eliminate_nop_transpose": (X + "{ a = Transpose <perm = [0, 1]> (x) y = Relu(a) }", ["Relu"]),
    "eliminate_nop_concat": (X + "{ a = Concat <axis = 0> (x) y = Relu(a) }", ["Relu"]),
    "fuse_consecutive_transposes": (
        X + "{ a = Transpose <perm = [1, 0]> (x) b = Transpose <perm = [1, 0]> (a) y = Relu(b) }",
        ["Relu", "Transpose"],
    ),
}
"""A graph for each pass, with the types of the nodes that it leaves."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_pass_does_what_its_name_says(name: str) -> None:
    text, expected = EXPECTED[name]
    assert_leaves(expected, of=HEAD + text, by=PASSES[name])


def test_the_default_run_shortens_a_model_and_keeps_what_it_computes() -> None:
    start = normal_form(with_detours(zoo.build("mlp")))
    before = onnx.load_from_string(start.SerializeToString())

    after = normal_form(default_run(start), interface_of=before)

    assert len(after.graph.node) < len(before.graph.node)
    assert compare(before, after, draws=1).equivalent
