"""The optimisers of ONNX Runtime that make a model wrong as deployed are found by switching them off."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from support.small_models import FLOAT

from rlflow.equivalence.fusions import is_right_without, to_blame
from rlflow.equivalence.reference import reference_of
from rlflow.equivalence.tolerance import tolerance_of
from rlflow.runtime.transformers import OPTIMISERS

WRONG_LAYER_NORM = [
    helper.make_node("ReduceMean", ["x"], ["m"], axes=[-1], keepdims=0),
    helper.make_node("Sub", ["x", "m"], ["d"]),
    helper.make_node("Pow", ["d", "two"], ["q"]),
    helper.make_node("ReduceMean", ["q"], ["v"], axes=[-1], keepdims=0),
    helper.make_node("Add", ["v", "small"], ["w"]),
    helper.make_node("Sqrt", ["w"], ["s"]),
    helper.make_node("Div", ["d", "s"], ["n"]),
    helper.make_node("Mul", ["n", "g"], ["a"]),
    helper.make_node("Add", ["a", "g"], ["y"]),
]
"""Columns less the means of rows, which two fusions take for a layer norm."""


def model(nodes: Sequence[Any], weights: dict[str, Any], kind: int = FLOAT, wide: int = 32) -> ModelProto:
    stored = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    ends = [helper.make_tensor_value_info(name, kind, [wide, wide]) for name in "xy"]
    graph = helper.make_graph(list(nodes), "fused", ends[:1], ends[1:], stored)
    return helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])


def layer_norm() -> ModelProto:
    weight = np.random.default_rng(0).standard_normal(32, np.float32)
    return model(WRONG_LAYER_NORM, {"two": np.float32(2), "small": np.float32(1e-5), "g": weight})


def refused() -> ModelProto:
    """ONNX Runtime loads it as written alone."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Clip", ["r", "lo", "hi"], ["y"])]
    return model(nodes, {"lo": np.float64(-1), "hi": np.float64(1)}, TensorProto.DOUBLE)


@pytest.mark.parametrize(
    ("made", "named"), [(layer_norm, "LayerNormFusionL1"), (refused, "FuseReluClip")], ids=["wrong", "refused"]
)
def test_they_are_named_and_no_fewer_help(made: Any, named: str) -> None:
    wrong = made()
    right = reference_of(wrong, ("as_written",), draws=1)
    question = (right.inputs, right.expected, tolerance_of(wrong))
    assert not is_right_without(wrong, (), *question)
    found = to_blame(wrong, *question)
    assert named in found
    assert is_right_without(wrong, found, *question)
    for each in found:
        assert not is_right_without(wrong, [name for name in found if name != each], *question)


def test_where_none_helps_none_is_named() -> None:
    """The model itself computes something else than what is expected."""
    right = reference_of(layer_norm(), ("as_written",), draws=1)
    other = [{"y": 2 * each["y"]} for each in right.expected]
    assert to_blame(layer_norm(), right.inputs, other, 1e-6) == ()


def test_a_question_may_be_asked_in_another_way() -> None:
    """As in a process of its own: each question is about a choice of optimisers that exist."""
    asked: list[tuple[str, ...]] = []

    def is_right(_: Any, switched_off: Sequence[str], *rest: Any) -> bool:
        asked.append(tuple(switched_off))
        return "GeluFusionL1" in switched_off

    assert to_blame(layer_norm(), [], [], 1e-6, is_right) == ("GeluFusionL1",)
    assert asked[0] == OPTIMISERS
    assert all(set(each) <= set(OPTIMISERS) for each in asked)
