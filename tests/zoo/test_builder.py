"""The builder: a parameter depends on the seed and its name alone, constants are stored once, names are unique."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from rlflow.errors import InputError
from rlflow.zoo.builder import CONSTANTS, GraphBuilder, lengths


def _builder(seed: int = 0) -> GraphBuilder:
    return GraphBuilder("test", seed=seed, opset=17)


def _weights(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}


def _product(seed: int, *names: str) -> dict[str, np.ndarray]:
    b = _builder(seed)
    x = b.input("x", (2, 3))
    for name in names:
        x = b.node("MatMul", x, b.parameter(name, (3, 3), std=1.0), scope=name)
    b.output("y", x, (2, 3))
    return _weights(b.finish())


def test_a_parameter_depends_on_seed_and_name_alone() -> None:
    one, other = _product(0, "a", "b"), _product(0, "b", "c", "a")
    assert np.array_equal(one["a"], other["a"])
    assert np.array_equal(one["b"], other["b"])
    assert not np.array_equal(one["a"], one["b"])
    assert not np.array_equal(one["a"], _product(1, "a")["a"])


def test_equal_constants_are_one_under_the_first_name() -> None:
    b = _builder()
    first, again = b.constant("two", np.float32(2)), b.constant("scale", np.float32(2))
    assert first == again == f"{CONSTANTS}two"
    assert b.constant("two", np.float32(3)) == f"{CONSTANTS}two_1"
    assert b.constant("two", np.int64(2)) not in (first, f"{CONSTANTS}two_1")


def test_nodes_are_named_by_scope_and_operator_and_counted() -> None:
    b = _builder()
    x = b.input("x", (2,))
    assert [b.node("Relu", x, scope="layer") for _ in range(2)] == ["layer/Relu", "layer/Relu_1"]
    assert b.multi_output_node("Split", x, scope="s", outputs=2) == ["s/Split", "s/Split:1"]


def test_a_model_that_is_wrong_is_refused_when_it_is_finished() -> None:
    b = _builder()
    b.output("y", b.node("MatMul", b.input("x", (2, 3)), b.input("z", (2, 3)), scope="m"), (2, 3))
    with pytest.raises(onnx.shape_inference.InferenceError):
        b.finish()


def test_opsets_outside_the_range_are_refused() -> None:
    with pytest.raises(InputError, match="test: opset is 3; choose one from"):
        GraphBuilder("test", seed=0, opset=3)


def test_a_reshape_target_copies_symbols() -> None:
    assert lengths(2, "batch", -1).tolist() == [2, 0, -1]
