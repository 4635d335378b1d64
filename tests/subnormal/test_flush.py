"""Weights with subnormal numbers are found, and nothing but these numbers changes; the bound has a closed form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import helper, numpy_helper
from support.small_models import FLOAT, build_model, dense_model
from support.subnormal_models import HARMLESS, RNG, convolutions, decayed, guarded, of_type, with_data_outside

from rlflow.onnx_io import load_model
from rlflow.subnormal.flush import NEARLY, multiplied
from rlflow.subnormal.flush import decayed as decayed_weights
from rlflow.subnormal.numbers import below
from rlflow.subnormal.weights import weights_of


def product(weights, name="w"):
    rows, columns = weights.shape
    node = helper.make_node("MatMul", ["x", name], ["y"])
    return build_model([node], [("x", FLOAT, [2, rows])], [("y", FLOAT, [2, columns])], {name: weights})


@pytest.mark.parametrize("name", HARMLESS)
def test_nothing_is_left_and_nothing_else_changes(name):
    model = HARMLESS[name]()
    before = model.SerializeToString()
    found = decayed_weights(model)
    assert found.weights
    assert not found.left
    flushed = multiplied(model, found.weights, 0.0)
    assert model.SerializeToString() == before, "the model itself stays as it is"
    assert not decayed_weights(flushed).all
    for old, new in zip(weights_of(model), weights_of(flushed), strict=True):
        kept = new.values() != 0
        np.testing.assert_array_equal(new.values()[kept], old.values()[kept])
    numbers = sum(
        (old.values() != new.values()).sum() for old, new in zip(*map(weights_of, (model, flushed)), strict=True)
    )
    assert numbers == sum(each.numbers for each in found.weights)


def test_a_model_without_them_has_none():
    assert not decayed_weights(dense_model()).all
    assert not decayed_weights(of_type(np.float16, 1e-6)).all, "a subnormal float16 is a normal float32"


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=6, max_size=6), st.integers(0, 99))
def test_a_product_loses_no_more_than_the_bound(numbers, seed):
    """Closed form: what is lost is the sum of w x over the numbers w that go, each of which is known."""
    weights = np.array(numbers, np.float32).reshape(3, 2)
    weights[0] = 1e-40, -3e-39
    model, x = product(weights), RNG(seed).standard_normal((2, 3)) * 1e3
    (found,) = decayed_weights(model).weights
    flushed = numpy_helper.to_array(multiplied(model, [found], 0.0).graph.initializer[0])
    lost = np.abs(x @ (weights.astype(np.float64) - flushed))
    assert lost.max() <= found.magnitude * np.abs(x).max()
    gone = weights[below(weights, NEARLY * 2.0**-126)].astype(np.float64)
    assert found.magnitude == pytest.approx(np.abs(gone).sum(), rel=1e-12)


def test_the_bound_of_what_a_normalisation_makes_subnormal_is_of_the_products():
    (found,) = decayed_weights(HARMLESS["batch norm"]()).weights
    filters = weights_of(HARMLESS["batch norm"]())[0]
    rows = np.abs(filters.products()[::3].astype(np.float64))
    assert (found.name, found.numbers) == ("w", rows.size)
    assert found.magnitude == pytest.approx(rows.sum())


def test_they_may_be_made_larger_and_are_normal_then():
    model = convolutions()
    found = decayed_weights(model).weights
    raised = multiplied(model, found, 2.0**24)
    assert not decayed_weights(raised).all
    for old, new in zip(weights_of(model), weights_of(raised), strict=True):
        small = below(old.values(), NEARLY * 2.0**-126)
        assert small.any()
        np.testing.assert_array_equal(new.values()[small], old.values()[small] * 2.0**24)


def test_where_some_are_subnormal_those_that_are_nearly_so_go_too():
    """2e-38 is normal, and half of it is not; the next layer's bias may hold it alone. Without a subnormal number, none
    is looked at.
    """
    weights = np.array([[1e-39, 2e-38, 1e-30], [0.5, -0.25, 1.0]], np.float32)
    (found,) = decayed_weights(product(weights)).weights
    assert (found.numbers, found.subnormal) == (2, 1)
    flushed = numpy_helper.to_array(multiplied(product(weights), [found], 0.0).graph.initializer[0])
    assert flushed.tolist() == [[0.0, 0.0, weights[0, 2]], weights[1].tolist()]
    weights[0, 0] = 0.0
    assert not decayed_weights(product(weights)).all


def test_an_epsilon_is_left():
    """It is a summand like a bias, but one number everywhere."""
    found = decayed_weights(guarded())
    assert [each.name for each in found.left] == ["epsilon"]
    assert not found.weights


def test_other_readers_keep_a_weight():
    model = product(decayed((9, 9)))
    model.graph.node.append(helper.make_node("Sign", ["w"], ["signs"]))
    model.graph.output.append(helper.make_tensor_value_info("signs", FLOAT, [9, 9]))
    found = decayed_weights(model)
    assert ([each.name for each in found.left], found.weights) == (["w"], ())


def test_whole_numbers_are_not_touched():
    """Bits of a whole number that would be those of a subnormal float."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Reshape", ["p", "shape"], ["y"])]
    weights = {"w": decayed((4, 4)), "shape": np.array([16], np.int64)}
    model = build_model(nodes, [("x", FLOAT, [4, 4])], [("y", FLOAT, [16])], weights)
    flushed = multiplied(model, decayed_weights(model).weights, 0.0)
    assert flushed.graph.initializer[1] == model.graph.initializer[1]


def test_weights_in_another_file_are_read_there(tmp_path):
    model = load_model(with_data_outside(convolutions(), tmp_path / "model.onnx"))
    inside = multiplied(convolutions(), decayed_weights(convolutions()).weights, 0.0)
    data = (tmp_path / "model.onnx.data").read_bytes()
    flushed = multiplied(model, decayed_weights(model).weights, 0.0)
    assert (tmp_path / "model.onnx.data").read_bytes() == data
    for left, right in zip(weights_of(flushed), weights_of(inside), strict=True):
        np.testing.assert_array_equal(left.values(), right.values())
