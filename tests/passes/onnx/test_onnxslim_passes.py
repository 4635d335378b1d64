"""The patterns of onnxslim, run alone, do what they are named after; together they do more."""

from __future__ import annotations

import onnx
import pytest
from support.onnx_passes import assert_leaves

from rlflow import zoo
from rlflow.equivalence.compare import compare
from rlflow.passes.onnx.normal_form import normal_form
from rlflow.passes.onnx.onnxslim_passes import PASSES, default_run

HEAD = '<ir_version: 10, opset_import: ["" : 17]>\n'
X = "g (float[2,3] x) => (float[2,3] y) "

EXPECTED = {
    "EliminationTranspose": (
        X + "{ a = Transpose <perm = [1, 0]> (x) b = Transpose <perm = [1, 0]> (a) y = Relu(b) }",
        ["Identity", "Relu"],
    ),
    "fold_constants": (X + "{ c = Constant <value = float {2.0}> () e = Exp(c) y = Mul(x, e) }", ["Mul"]),
    "dead_node_elimination": (X + "{ a = Dropout(x) y = Relu(a) }", ["Relu"]),
    "subexpression_elimination": (X + "{ a = Relu(x) b = Relu(x) y = Add(a, b) }", ["Add", "Relu"]),
}
"""A graph for each pass, with the types of the nodes that it leaves."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_pass_does_what_its_name_says(name: str) -> None:
    text, expected = EXPECTED[name]
    assert_leaves(expected, of=HEAD + text, by=PASSES[name])


def test_the_default_run_shortens_a_model_and_keeps_what_it_computes() -> None:
    start = normal_form(zoo.build("bert", layer_norm="decomposed", **zoo.describe("bert").small))
    before = onnx.load_from_string(start.SerializeToString())

    after = normal_form(default_run(start), interface_of=before)

    assert len(after.graph.node) < len(before.graph.node)
    assert compare(before, after, draws=1).equivalent
