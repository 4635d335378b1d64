"""The rules of onnxscript, applied alone, do what they are named after; together they do more."""

from __future__ import annotations

import onnx
import pytest
from onnx import parser
from onnxscript import rewriter
from onnxscript.rewriter.rules import common

from rlflow import zoo
from rlflow.equivalence.compare import compare
from rlflow.passes.onnx.normal_form import normal_form
from rlflow.passes.onnx.onnxscript_passes import CONTRIB, PASSES, default_run

HEAD = '<ir_version: 10, opset_import: ["" : 17, "com.microsoft" : 1]>\n'
X = "g (float[2,3] x) => (float[2,3] y) "
GELU = (
    "{ root = Constant <value = float {1.4142135}> () one = Constant <value = float {1.0}> () "
    "half = Constant <value = float {0.5}> () a = Div(x, root) b = Erf(a) c = Add(b, one) "
    "d = Mul(x, c) y = Mul(d, half) }"
)

EXPECTED = {
    "fold_constants": (X + "{ c = Constant <value = float {2.0}> () e = Exp(c) y = Mul(x, e) }", ["Mul"]),
    "no_op_cast": (X + "{ a = Cast <to = 1> (x) b = Neg(a) y = Relu(b) }", ["Identity", "Neg", "Relu"]),
    "transpose_transpose": (
        X + "{ a = Transpose <perm = [1, 0]> (x) b = Transpose <perm = [1, 0]> (a) y = Relu(b) }",
        ["Identity", "Relu"],
    ),
    "gelu": (X + GELU, ["Gelu"]),
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


def test_the_default_run_shortens_a_model_and_keeps_what_it_computes() -> None:
    start = normal_form(zoo.build("bert", layer_norm="decomposed", **zoo.describe("bert").small))
    before = onnx.load_from_string(start.SerializeToString())

    after = normal_form(default_run(start), interface_of=before)

    assert len(after.graph.node) < len(before.graph.node)
    assert compare(before, after, draws=1).equivalent


BETWEEN = "{ c0 = Constant <value = float {0.0}> () c1 = Constant <value = float {1.0}> () "
WRONG = {
    "apart": BETWEEN + "c2 = Constant <value = float {2.0}> () c3 = Constant <value = float {3.0}> () "
    "a = Clip(x, c0, c1) y = Clip(a, c2, c3) }",
    "near 0": "{ c = Constant <value = float {0.000000001}> () a = Sub(x, x) b = Add(a, c) s = Sqrt(b) y = Div(c, s) }",
    "near 1": "{ c = Constant <value = float {1.000005}> () n = Constant <value = float {1.0}> () "
    "a = Mul(n, c) b = Mul(x, c) d = Sub(b, x) y = Div(d, c) }",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_the_rules_that_are_wrong_are_no_actions(text: str) -> None:
    """Each graph is one that the default run makes wrong, so that an action which did the same would be found."""
    model = normal_form(parser.parse_model(HEAD + X + text))

    assert not compare(model, normal_form(default_run(model)), draws=3).equivalent
    for name, transformation in PASSES.items():
        assert compare(model, normal_form(transformation(model)), draws=3).equivalent, name


def test_a_transposed_weight_stays_transposed() -> None:
    """The rule that forgets it shows that the graph would tell."""
    model = normal_form(
        parser.parse_model(
            HEAD + "g (float[1,2,3] x, float[3,3] w, float[3] c) => (float[1,2,3] y) {"
            "flat = Constant <value_ints = [2, 3]> () whole = Constant <value_ints = [1, 2, 3]> ()"
            "a = Reshape(x, flat) b = Gemm <transB = 1, alpha = 1.0, beta = 1.0> (a, w, c) y = Reshape(b, whole) }"
        )
    )

    assert not compare(model, normal_form(rewriter.rewrite(model, [common.gemm_to_matmul_add_rule]))).equivalent
    for name, transformation in PASSES.items():
        assert compare(model, normal_form(transformation(model)), draws=1).equivalent, name


def test_a_sum_and_its_normalisation_become_one() -> None:
    """On a whole model, as the rule asks for the shapes of what is summed."""
    start = normal_form(zoo.build("bert", **zoo.describe("bert").small))

    after = CONTRIB["skip_layer_normalization"](start)

    assert "SkipLayerNormalization" in {node.op_type for node in after.graph.node}
    assert compare(start, normal_form(after), draws=1).equivalent
