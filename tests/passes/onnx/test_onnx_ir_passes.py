"""The passes of onnx-ir clean up what nobody reads and what stands twice."""

from __future__ import annotations

import onnx
import pytest
from onnx import parser
from support.onnx_passes import assert_leaves

from rlflow.equivalence.compare import compare
from rlflow.passes.onnx.onnx_ir_passes import PASSES

HEAD = '<ir_version: 10, opset_import: ["" : 17]>\n'
X = "g (float[2,3] x) => (float[2,3] y) "

EXPECTED = {
    "CommonSubexpressionElimination": (X + "{ a = Relu(x) b = Relu(x) y = Add(a, b) }", ["Add", "Relu"]),
    "RemoveUnusedNodes": (X + "{ a = Relu(x) y = Neg(x) }", ["Neg"]),
}
"""A graph for each pass, with the types of the nodes that it leaves."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_pass_does_what_its_name_says(name: str) -> None:
    text, expected = EXPECTED[name]
    assert_leaves(expected, of=HEAD + text, by=PASSES[name])


def test_equal_weights_become_one() -> None:
    """Two are left of three, as the third has another number."""
    names = {"p": 1.0, "q": 1.0, "r": 2.0}
    model = parser.parse_model(HEAD + X + "{ a = Add(x, p) b = Mul(a, q) y = Sub(b, r) }")
    for name, value in names.items():
        model.graph.initializer.add(name=name, data_type=onnx.TensorProto.FLOAT, float_data=[value])

    after = PASSES["DeduplicateInitializers"](model)

    assert len(after.graph.initializer) == 2
    assert compare(model, after, draws=1).equivalent
