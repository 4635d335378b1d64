"""The optimisers of ONNX Runtime that make a model wrong as deployed are found by switching them off."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from rlflow.equivalence.fusions import is_right_without, to_blame
from rlflow.equivalence.reference import reference_of
from rlflow.equivalence.tolerance import tolerance_of
from rlflow.runtime.transformers import OPTIMISERS

RNG = np.random.default_rng(0)
LAYER_NORM = """
    m = ReduceMean <axes = [-1], keepdims = 0> (x)
    d = Sub(x, m) q = Pow(d, two) v = ReduceMean <axes = [-1], keepdims = 0> (q)
    e = Add(v, small) s = Sqrt(e) n = Div(d, s) a = Mul(n, g) y = Add(a, g)
"""
"""Columns less the means of rows, which two fusions take for a layer norm."""
RMS_NORM = """
    q = Pow(x, two) v = ReduceMean <axes = [-1], keepdims = 0> (q)
    e = Add(v, small) s = Sqrt(e) n = Div(x, s) y = Mul(n, g)
"""
DOUBLY_ROUNDED = """
    q = QuantizeLinear(x, coarse, middle) d = DequantizeLinear(q, coarse, middle)
    r = QuantizeLinear(d, fine, middle) y = DequantizeLinear(r, fine, middle)
"""
IN_BLOCKS = "w = DequantizeLinear <axis = 0, block_size = 16> (whole, scales) y = MatMul(x, w)"
"""Runs with activations of 8 bits as deployed."""
CLIPPED = "r = Relu(x) y = Clip(r, lo, hi)"
"""Of float64, which ONNX Runtime loads as written alone."""
WEIGHTS = {
    "two": np.float32(2),
    "small": np.float32(1e-5),
    "g": RNG.standard_normal(32, np.float32),
    "coarse": np.float32(0.3),
    "fine": np.float32(0.07),
    "middle": np.uint8(128),
    "scales": np.abs(RNG.standard_normal((2, 32), np.float32)) / 8,
    "lo": np.float64(-1),
    "hi": np.float64(1),
}


def model(nodes: str, kind: str = "float", bits: int = TensorProto.INT4) -> ModelProto:
    """A model of x and y, [32, 32] both, with those of the weights that its nodes name."""
    made = parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 17]> g ({kind}[32, 32] x) => ({kind}[32, 32] y) {{{nodes}}}'
    )
    named = {name for node in made.graph.node for name in node.input}
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(WEIGHTS[n]), n) for n in WEIGHTS if n in named)
    if "whole" in named:
        made.opset_import[0].version = 21
        whole = RNG.integers(-8, 8, 1024).tolist()
        made.graph.initializer.append(helper.make_tensor("whole", bits, [32, 32], whole))
    return made


WRONG_AS_DEPLOYED = {
    "LayerNormFusionL1": model(LAYER_NORM),
    "SimplifiedLayerNormFusion": model(RMS_NORM),
    "DoubleQDQPairsRemover": model(DOUBLY_ROUNDED),
    "QDQSelectorActionTransformer": model(IN_BLOCKS),
    "QDQSelectorActionTransformer of 8 bits": model(IN_BLOCKS, bits=TensorProto.INT8),
    "FuseReluClip": model(CLIPPED, "double"),
}


@pytest.mark.parametrize("name", WRONG_AS_DEPLOYED)
def test_they_are_named_and_no_fewer_help(name: str) -> None:
    wrong = WRONG_AS_DEPLOYED[name]
    right = reference_of(wrong, ("as_written",), draws=1)
    question = (right.inputs, right.outputs, tolerance_of(wrong))
    assert not is_right_without(wrong, (), *question)
    found = to_blame(wrong, *question)
    assert name.split()[0] in found
    assert is_right_without(wrong, found, *question)
    for each in found:
        assert not is_right_without(wrong, [name for name in found if name != each], *question)


def test_a_model_that_is_right_has_none() -> None:
    right = model("y = Exp(x)")
    known = reference_of(right, ("as_written",), draws=1)
    assert to_blame(right, known.inputs, known.outputs, tolerance_of(right)) == ()


def test_where_none_helps_none_is_named() -> None:
    """The model itself computes something else than what is expected."""
    right = reference_of(WRONG_AS_DEPLOYED["LayerNormFusionL1"], ("as_written",), draws=1)
    other = [{"y": 2 * each["y"]} for each in right.outputs]
    assert to_blame(WRONG_AS_DEPLOYED["LayerNormFusionL1"], right.inputs, other, 1e-6) == ()


def test_a_question_may_be_asked_in_another_way() -> None:
    """As in a process of its own: each question is about a choice of optimisers that exist."""
    asked: list[tuple[str, ...]] = []

    def is_right(_: Any, switched_off: Sequence[str], *rest: Any) -> bool:
        asked.append(tuple(switched_off))
        return "GeluFusionL1" in switched_off

    assert to_blame(WRONG_AS_DEPLOYED["LayerNormFusionL1"], [], [], 1e-6, is_right) == ("GeluFusionL1",)
    assert asked[:2] == [(), OPTIMISERS]
    assert all(set(each) <= set(OPTIMISERS) for each in asked)
