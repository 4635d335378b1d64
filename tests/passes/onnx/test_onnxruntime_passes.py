"""The transformers of ONNX Runtime are actions by their own names, and levels are pipelines."""

from __future__ import annotations

import onnx
import pytest
from onnx import parser

from rlflow import zoo
from rlflow.equivalence.compare import compare
from rlflow.passes.onnx.normal_form import normal_form
from rlflow.passes.onnx.onnxruntime_passes import CONTRIB, PASSES, basic_run, extended_run
from rlflow.runtime.transformers import TRANSFORMERS

HEAD = '<ir_version: 10, opset_import: ["" : 17]>\n'
X = "g (float[2,3] x) => (float[2,3] y) "

EXPECTED = {
    "EliminateDropout": (X + "{ a = Dropout(x) y = Relu(a) }", ["Relu"]),
    "ConstantFolding": (X + "{ c = Constant <value = float {2.0}> () e = Exp(c) y = Mul(x, e) }", ["Mul"]),
    "QuickGeluFusion": (
        X + "{ c = Constant <value = float {1.7}> () a = Mul(x, c) s = Sigmoid(a) y = Mul(x, s) }",
        ["QuickGelu"],
    ),
}
"""A graph for each pass, with the types of the nodes that it leaves."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_pass_does_what_its_name_says(name: str) -> None:
    text, expected = EXPECTED[name]
    before = normal_form(parser.parse_model(HEAD + text))
    copy = before.SerializeToString(deterministic=True)

    after = normal_form((PASSES | CONTRIB)[name](before), interface_of=onnx.load_from_string(copy))

    assert sorted(node.op_type for node in after.graph.node) == sorted(expected)
    assert sorted(node.op_type for node in onnx.load_from_string(copy).graph.node) != sorted(expected)
    assert compare(onnx.load_from_string(copy), after, draws=1).equivalent


def test_the_extended_level_leaves_fewer_nodes_than_the_basic_one() -> None:
    start = normal_form(zoo.build("bert", layer_norm="decomposed", **zoo.describe("bert").small))

    basic, extended = basic_run(start), extended_run(start)

    assert len(extended.graph.node) < len(basic.graph.node) < len(start.graph.node)
    assert compare(start, extended, draws=1).equivalent


def test_every_name_is_one_that_onnx_runtime_has() -> None:
    """It would ignore another one without a word."""
    assert {*PASSES, *CONTRIB} <= set(TRANSFORMERS)
