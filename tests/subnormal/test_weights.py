"""The weights of a model, wherever they are held, and what their readers make of them."""

import numpy as np
from onnx import helper
from support.small_models import FLOAT, build_model
from support.subnormal_models import batch_normalised, branches, constants, guarded, loop, of_type

from rlflow.subnormal.weights import weights_of

READERS = {
    "Transpose": True,
    "Neg": False,
    "Log": False,
    "Identity": True,
}


def coefficients(model):
    return {weight.name: weight.is_coefficient for weight in weights_of(model)}


def test_weights_are_found_wherever_they_are_held():
    assert [weight.name for weight in weights_of(constants())] == ["w", "b", "s"]
    assert [weight.name for weight in weights_of(loop())] == ["rounds", "true", "outer", "inner"]
    assert {weight.name for weight in weights_of(branches())} == {"far", "w", "v", "huge"}


def test_a_weight_of_the_main_graph_is_read_inside_a_body():
    found = coefficients(loop())
    assert found["outer"]
    assert found["inner"]
    assert not found["rounds"], "the number of rounds is no coefficient"


def test_readers_of_what_a_weight_becomes_count():
    """Through a Transpose to a product it is a coefficient, through a Neg nobody knows."""
    for between, expected in READERS.items():
        nodes = [helper.make_node(between, ["w"], ["v"]), helper.make_node("MatMul", ["x", "v"], ["y"])]
        model = build_model(nodes, [("x", FLOAT, [2, 2])], [("y", FLOAT, [2, 2])], {"w": np.eye(2, dtype=np.float32)})
        assert coefficients(model) == {"w": expected}


def test_one_reader_that_does_something_else_is_enough():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Div", ["p", "w"], ["y"])]
    model = build_model(nodes, [("x", FLOAT, [2, 2])], [("y", FLOAT, [2, 2])], {"w": np.eye(2, dtype=np.float32)})
    assert coefficients(model) == {"w": False}


def test_an_output_is_no_coefficient_and_neither_is_what_nobody_reads():
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Identity", ["w"], ["z"])]
    outputs = [("y", FLOAT, [2, 2]), ("z", FLOAT, [2, 2])]
    weights = {"w": np.eye(2, dtype=np.float32), "idle": np.eye(2, dtype=np.float32)}
    assert coefficients(build_model(nodes, [("x", FLOAT, [2, 2])], outputs, weights)) == {"w": False, "idle": False}


def test_sibling_bodies_may_use_one_name():
    """Each has its own weight under it; what one does with it says nothing of the other."""
    model = branches()
    rare = next(a.g for node in model.graph.node for a in node.attribute if a.name == "else_branch")
    for node in rare.node:
        node.input[:] = ["w" if name == "v" else name for name in node.input]
        node.output[:] = ["w" if name == "v" else name for name in node.output]
    rare.node[2].op_type = "Div"  # p = x / w
    rare.node[2].input[:] = ["x", "w"]
    assert sorted(w.is_coefficient for w in weights_of(model) if w.name == "w") == [False, True]


def test_the_type_in_which_sums_read_it():
    (weight,) = weights_of(of_type(np.float64, 1.0, cast=True))
    assert weight.element == FLOAT
    (weight,) = weights_of(of_type(np.float64, 1.0))
    assert weight.element == helper.np_dtype_to_tensor_dtype(np.dtype(np.float64))


def test_filters_know_the_factor_of_the_normalisation_after_them():
    """scale / sqrt(variance + epsilon), by the definition of BatchNormalization."""
    filters = weights_of(batch_normalised(scale=0.5))[0]
    scales = np.where(np.arange(9) % 3, 1.0, 0.5) / np.sqrt(1 + 1e-5)
    np.testing.assert_allclose(filters.factors, scales, rtol=1e-6)
    np.testing.assert_allclose(filters.products(), filters.values() * scales.reshape(9, 1, 1, 1), rtol=1e-6)


def test_a_normalisation_that_is_trained_or_not_alone_has_no_factor():
    trained = batch_normalised()
    trained.graph.node[1].attribute.append(helper.make_attribute("training_mode", 1))
    assert weights_of(trained)[0].factors is None
    read_twice = batch_normalised()
    read_twice.graph.output.append(helper.make_tensor_value_info("c", FLOAT, [1, 9, 6, 6]))
    assert weights_of(read_twice)[0].factors is None


def test_an_epsilon_is_a_summand():
    """It is told from a bias by its values (`rlflow.subnormal.flush`)."""
    assert coefficients(guarded()) == {"epsilon": True}


def test_what_is_stored_is_read_again():
    model = constants()
    for weight in weights_of(model):
        weight.store(weight.values() * 2)
    for before, after in zip(weights_of(constants()), weights_of(model), strict=True):
        np.testing.assert_array_equal(after.values(), before.values() * 2)
