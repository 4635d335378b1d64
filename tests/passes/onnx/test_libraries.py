"""The passes of each library, run alone, do what they are named after; together they do more."""

from __future__ import annotations

from collections.abc import Callable

import onnx
import pytest
from onnx import ModelProto, parser
from onnxscript import rewriter
from onnxscript.rewriter.rules import common

from rlflow import zoo
from rlflow.equivalence.compare import compare
from rlflow.passes.onnx import (
    onnx_ir_passes,
    onnxoptimizer_passes,
    onnxruntime_passes,
    onnxscript_passes,
    onnxslim_passes,
)
from rlflow.passes.onnx.detours import with_detours
from rlflow.passes.onnx.normal_form import normal_form
from rlflow.runtime.transformers import TRANSFORMERS

HEAD = '<ir_version: 10, opset_import: ["" : 17, "com.microsoft" : 1]>\n'
X = "g (float[2,3] x) => (float[2,3] y) "
TWICE_TURNED = "{ a = Transpose <perm = [1, 0]> (x) b = Transpose <perm = [1, 0]> (a) y = Relu(b) }"
TWICE_COMPUTED = "{ a = Relu(x) b = Relu(x) y = Add(a, b) }"
OF_CONSTANTS = "{ c = Constant <value = float {2.0}> () e = Exp(c) y = Mul(x, e) }"
GELU = (
    "{ root = Constant <value = float {1.4142135}> () one = Constant <value = float {1.0}> () "
    "half = Constant <value = float {0.5}> () a = Div(x, root) b = Erf(a) c = Add(b, one) "
    "d = Mul(x, c) y = Mul(d, half) }"
)
QUICK_GELU = "{ c = Constant <value = float {1.7}> () a = Mul(x, c) s = Sigmoid(a) y = Mul(x, s) }"

Pass = Callable[[ModelProto], ModelProto]
PASSES: dict[str, dict[str, Pass]] = {
    "onnx_ir": dict(onnx_ir_passes.PASSES),
    "onnxoptimizer": dict(onnxoptimizer_passes.PASSES),
    "onnxruntime": {**onnxruntime_passes.PASSES, **onnxruntime_passes.CONTRIB},
    "onnxscript": {**onnxscript_passes.PASSES, **onnxscript_passes.CONTRIB},
    "onnxslim": dict(onnxslim_passes.PASSES),
}
EXPECTED = {
    ("onnx_ir", "CommonSubexpressionElimination"): (TWICE_COMPUTED, ["Add", "Relu"]),
    ("onnx_ir", "RemoveUnusedNodes"): ("{ a = Relu(x) y = Neg(x) }", ["Neg"]),
    ("onnxoptimizer", "eliminate_identity"): ("{ a = Identity(x) y = Relu(a) }", ["Relu"]),
    ("onnxoptimizer", "eliminate_nop_cast"): ("{ a = Cast <to = 1> (x) y = Relu(a) }", ["Relu"]),
    ("onnxoptimizer", "eliminate_nop_transpose"): ("{ a = Transpose <perm = [0, 1]> (x) y = Relu(a) }", ["Relu"]),
    ("onnxoptimizer", "eliminate_nop_concat"): ("{ a = Concat <axis = 0> (x) y = Relu(a) }", ["Relu"]),
    ("onnxoptimizer", "fuse_consecutive_transposes"): (TWICE_TURNED, ["Relu", "Transpose"]),
    ("onnxruntime", "EliminateDropout"): ("{ a = Dropout(x) y = Relu(a) }", ["Relu"]),
    ("onnxruntime", "ConstantFolding"): (OF_CONSTANTS, ["Mul"]),
    ("onnxruntime", "QuickGeluFusion"): (QUICK_GELU, ["QuickGelu"]),
    ("onnxscript", "fold_constants"): (OF_CONSTANTS, ["Mul"]),
    ("onnxscript", "no_op_cast"): ("{ a = Cast <to = 1> (x) b = Neg(a) y = Relu(b) }", ["Identity", "Neg", "Relu"]),
    ("onnxscript", "transpose_transpose"): (TWICE_TURNED, ["Identity", "Relu"]),
    ("onnxscript", "gelu"): (GELU, ["Gelu"]),
    ("onnxslim", "EliminationTranspose"): (TWICE_TURNED, ["Identity", "Relu"]),
    ("onnxslim", "fold_constants"): (OF_CONSTANTS, ["Mul"]),
    ("onnxslim", "dead_node_elimination"): ("{ a = Dropout(x) y = Relu(a) }", ["Relu"]),
    ("onnxslim", "subexpression_elimination"): (TWICE_COMPUTED, ["Add", "Relu"]),
}
"""A graph for each pass, with the types of the nodes that it leaves."""


def types(model: ModelProto) -> list[str]:
    return sorted(node.op_type for node in model.graph.node)


def copied(model: ModelProto) -> ModelProto:
    return onnx.load_from_string(model.SerializeToString(deterministic=True))


def decomposed_bert() -> ModelProto:
    return normal_form(zoo.build("bert", layer_norm="decomposed", **zoo.describe("bert").small))


@pytest.mark.parametrize(("library", "name"), EXPECTED)
def test_a_pass_does_what_its_name_says(library: str, name: str) -> None:
    """The nodes that it leaves are not those that were there, and the outputs are the same."""
    text, expected = EXPECTED[library, name]
    before = normal_form(parser.parse_model(HEAD + X + text))
    start = copied(before)
    after = normal_form(PASSES[library][name](before), interface_of=start)
    assert types(after) == sorted(expected) != types(start)
    assert compare(start, after, draws=1).equivalent


@pytest.mark.parametrize(
    ("run", "model"),
    [
        (onnxoptimizer_passes.default_run, with_detours(zoo.build("mlp"))),
        (onnxscript_passes.default_run, decomposed_bert()),
        (onnxslim_passes.default_run, decomposed_bert()),
    ],
    ids=["onnxoptimizer", "onnxscript", "onnxslim"],
)
def test_the_default_run_shortens_a_model_and_keeps_what_it_computes(run: Pass, model: ModelProto) -> None:
    start = normal_form(model)
    before = copied(start)
    after = normal_form(run(start), interface_of=before)
    assert len(after.graph.node) < len(before.graph.node)
    assert compare(before, after, draws=1).equivalent


def test_equal_weights_become_one() -> None:
    """Two are left of three, as the third has another number."""
    names = {"p": 1.0, "q": 1.0, "r": 2.0}
    model = parser.parse_model(HEAD + X + "{ a = Add(x, p) b = Mul(a, q) y = Sub(b, r) }")
    for name, value in names.items():
        model.graph.initializer.add(name=name, data_type=onnx.TensorProto.FLOAT, float_data=[value])
    after = onnx_ir_passes.PASSES["DeduplicateInitializers"](model)
    assert len(after.graph.initializer) == 2
    assert compare(model, after, draws=1).equivalent


def test_the_extended_level_of_onnx_runtime_leaves_fewer_nodes_than_the_basic_one() -> None:
    start = decomposed_bert()
    basic, extended = onnxruntime_passes.basic_run(start), onnxruntime_passes.extended_run(start)
    assert len(extended.graph.node) < len(basic.graph.node) < len(start.graph.node)
    assert compare(start, extended, draws=1).equivalent


def test_every_name_is_one_that_onnx_runtime_has() -> None:
    """It would ignore another one without a word."""
    assert set(PASSES["onnxruntime"]) <= set(TRANSFORMERS)


BETWEEN = "{ c0 = Constant <value = float {0.0}> () c1 = Constant <value = float {1.0}> () "
WRONG = {
    "apart": BETWEEN + "c2 = Constant <value = float {2.0}> () c3 = Constant <value = float {3.0}> () "
    "a = Clip(x, c0, c1) y = Clip(a, c2, c3) }",
    "near 0": "{ c = Constant <value = float {0.000000001}> () a = Sub(x, x) b = Add(a, c) s = Sqrt(b) y = Div(c, s) }",
    "near 1": "{ c = Constant <value = float {1.000005}> () n = Constant <value = float {1.0}> () "
    "a = Mul(n, c) b = Mul(x, c) d = Sub(b, x) y = Div(d, c) }",
}


@pytest.mark.parametrize("text", WRONG.values(), ids=WRONG)
def test_the_rules_of_onnxscript_that_are_wrong_are_no_actions(text: str) -> None:
    """Each graph is one that the default run makes wrong, so that an action which did the same would be found."""
    model = normal_form(parser.parse_model(HEAD + X + text))
    assert not compare(model, normal_form(onnxscript_passes.default_run(model)), draws=3).equivalent
    for name, transformation in onnxscript_passes.PASSES.items():
        assert compare(model, normal_form(transformation(model)), draws=3).equivalent, name


def test_a_transposed_weight_stays_transposed() -> None:
    """The rule of onnxscript that forgets it shows that the graph would tell."""
    model = normal_form(
        parser.parse_model(
            HEAD + "g (float[1,2,3] x, float[3,3] w, float[3] c) => (float[1,2,3] y) {"
            "flat = Constant <value_ints = [2, 3]> () whole = Constant <value_ints = [1, 2, 3]> ()"
            "a = Reshape(x, flat) b = Gemm <transB = 1, alpha = 1.0, beta = 1.0> (a, w, c) y = Reshape(b, whole) }"
        )
    )
    assert not compare(model, normal_form(rewriter.rewrite(model, [common.gemm_to_matmul_add_rule]))).equivalent
    for name, transformation in onnxscript_passes.PASSES.items():
        assert compare(model, normal_form(transformation(model)), draws=1).equivalent, name


def test_a_sum_and_its_normalisation_become_one() -> None:
    """On a whole model, as the rule asks for the shapes of what is summed."""
    start = normal_form(zoo.build("bert", **zoo.describe("bert").small))
    after = onnxscript_passes.CONTRIB["skip_layer_normalization"](start)
    assert "SkipLayerNormalization" in types(after)
    assert compare(start, normal_form(after), draws=1).equivalent
