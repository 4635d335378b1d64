"""Inputs that tell models apart: at turning points, over whole ranges, and never such as would end a process."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from support.small_models import FLOAT, build_model

from rlflow.ops.use import NO_USE, Use
from rlflow.runtime.input_domains import uses_of
from rlflow.runtime.revealing_inputs import Manner, exceptional_inputs, revealing_inputs
from rlflow.runtime.session import open_session, run

INT8, INT32, INT64, UINT8, BOOL = (getattr(TensorProto, name) for name in "INT8 INT32 INT64 UINT8 BOOL".split())
STORED = {
    "low": np.float32(-2),
    "high": np.float32(6),
    "ten": np.float32(10),
    "half": np.float32(0.5),
    "whole": np.array(42),
    "matrix": np.eye(64, dtype=np.float32),
}


def chain(*steps, element=FLOAT, output=None, size=64, more=()):
    """A model that sends x through nodes (operator, operands besides, attributes), to y."""
    values = ["x", *(f"v{i}" for i in range(1, len(steps))), "y"]
    nodes = [
        helper.make_node(kind, [values[k], *others], [values[k + 1]], **dict(*attributes))
        for k, (kind, others, *attributes) in enumerate(steps)
    ]
    stored = {name: np.asarray(value) for name, value in STORED.items()}
    return build_model(nodes, [("x", element, [1, size]), *more], [("y", output or element, None)], stored, opset=18)


def drawn(model, number=0, seed=0, loudness=1.0):
    return revealing_inputs(model, np.random.default_rng(seed), Manner(number, loudness), uses=uses_of(model))


def turns(*steps, **settings):
    use = uses_of(chain(*steps, **settings)).get("x", NO_USE)
    return set(use.turns), set(use.near)


@pytest.mark.parametrize(
    ("steps", "exact", "rounded"),
    [
        ([("Clip", ["low", "high"])], {-2, 6}, set()),
        ([("Identity", []), ("Relu", [])], {0}, set()),
        ([("Relu", []), ("Min", ["high"])], {0, 6}, set()),
        ([("Neg", []), ("Max", ["ten"])], {-10}, set()),
        ([("Abs", []), ("Min", ["ten"])], {-10, 0, 10}, set()),
        ([("Greater", ["ten"])], {10}, set()),
        ([("Mul", ["half"]), ("Min", ["high"])], set(), {12}),
        ([("Add", ["ten"]), ("Relu", [])], set(), {-10}),
        ([("Sub", ["ten"]), ("Relu", [])], set(), {10}),
        ([("Div", ["half"]), ("Min", ["ten"])], set(), {5}),
        ([("Sqrt", []), ("Min", ["ten"])], set(), {100}),
        ([("HardSigmoid", [], {"alpha": 0.25, "beta": 0.5})], set(), {-2, 2}),
        ([("HardSwish", [])], {-3, 3}, set()),
        ([("ThresholdedRelu", [], {"alpha": 3.0})], {-3, 3}, set()),
        ([("QuantizeLinear", ["half"])], set(), {0, 127.5}),
        ([("MatMul", ["matrix"]), ("Clip", ["low", "high"])], set(), set()),
    ],
    ids=lambda steps: " ".join(step[0] for step in steps) if isinstance(steps, list) else "",
)
def test_turning_points_are_read_off_a_model(steps, exact, rounded):
    output = {"Greater": BOOL, "QuantizeLinear": UINT8}.get(steps[-1][0])
    assert turns(*steps, output=output) == (exact, rounded)


def test_a_bound_is_drawn_with_a_step_on_either_side():
    model = chain(("Clip", ["low", "high"]))
    values = np.concatenate([drawn(model, number)["x"].reshape(-1) for number in range(3)])
    six = np.float32(6)
    assert {six, np.nextafter(six, np.float32(9)), np.nextafter(six, np.float32(0))} <= set(values)
    assert (values < -2).any()
    assert (values > 6).any()


def test_a_bound_behind_rounding_is_drawn_about_but_not_at():
    model = chain(("Mul", ["half"]), ("Min", ["high"]))
    values = np.concatenate([drawn(model, number)["x"].reshape(-1) for number in range(3)])
    assert (np.abs(values - 12) > 0.1).all()
    assert (values > 12).any()


@pytest.mark.parametrize("bound", ["high", "ten"])
def test_wide_numbers_reach_a_bound_behind_a_sum(bound):
    model = chain(("MatMul", ["matrix"]), ("Clip", ["low", bound]))
    beyond = [int((drawn(model, number)["x"] > STORED[bound]).sum()) for number in range(3)]
    assert beyond[1] > 8
    assert beyond[0] == 0


@pytest.mark.parametrize("element", [INT8, UINT8, INT32, INT64, TensorProto.UINT64, TensorProto.INT16])
def test_integers_have_their_whole_range_with_its_edges(element):
    model = chain(("Identity", []), element=element, size=400)
    values, ends = drawn(model)["x"], np.iinfo(helper.tensor_dtype_to_np_dtype(element))
    assert {ends.min, ends.max, 0, 1} <= set(values.reshape(-1).tolist())
    assert len(np.unique(values)) > 60


def test_a_number_that_is_asked_for_is_drawn_with_its_neighbours():
    values = drawn(chain(("Equal", ["whole"]), element=INT64, output=BOOL, size=200))["x"]
    assert {41, 42, 43} <= set(values.reshape(-1).tolist())


@pytest.mark.parametrize(
    "steps",
    [
        [("Range", ["whole", "whole"])],
        [("ConstantOfShape", [])],
        [("Add", ["whole"]), ("ConstantOfShape", [])],
        [("Identity", []), ("NoSuchOperator", [])],
    ],
    ids=lambda steps: " ".join(step[0] for step in steps),
)
@pytest.mark.parametrize("number", range(3))
def test_what_may_be_a_size_stays_small(steps, number):
    assert set(drawn(chain(*steps, element=INT64), number)["x"].reshape(-1).tolist()) <= {1, 2, 3, 4}


@pytest.mark.parametrize("operator", ["Div", "Mod"])
@pytest.mark.parametrize("element", [INT32, INT64])
def test_no_division_ends_the_process(operator, element):
    """Nothing is divided by 0, nor the lowest integer by -1."""
    lowest = np.iinfo(helper.tensor_dtype_to_np_dtype(element)).min
    model = chain((operator, ["z"]), element=element, more=[("z", element, [1, 64])])
    session = open_session(model, "as_written")
    signs = set()
    for number in range(9):
        inputs = drawn(model, number, seed=number)
        assert not {0, -1} & set(inputs["z"].reshape(-1).tolist())
        assert lowest not in inputs["x"]
        signs |= set(np.sign(inputs["z"]).reshape(-1).tolist()) | set(np.sign(inputs["x"]).reshape(-1).tolist())
        run(session, inputs)
    assert signs == {-1, 0, 1}


def test_divisors_that_are_computed_stay_positive():
    """x + 42 must not be 0."""
    model = chain(("Add", ["whole"]), ("Mod", ["whole"]), element=INT64)
    assert drawn(model)["x"].min() < 0, "a dividend may be anything"
    nodes = [helper.make_node("Add", ["x", "whole"], ["d"]), helper.make_node("Div", ["whole", "d"], ["y"])]
    model = build_model(nodes, [("x", INT64, [64])], [("y", INT64, [64])], {"whole": np.array(42)})
    assert drawn(model)["x"].min() > 0


def test_integers_that_become_floats_are_moderate():
    """A sine of 10**18 has no digit that is right."""
    values = drawn(chain(("Cast", [], {"to": FLOAT}), ("Sin", []), element=INT64, output=FLOAT))["x"]
    assert -128 <= values.min() < 0 < values.max() <= 128


@pytest.mark.parametrize("seed", range(8))
def test_a_truth_is_one_and_the_other_in_any_three_inputs(seed):
    model = chain(("Not", []), element=BOOL, size=1)
    assert {bool(drawn(model, seed + number)["x"].item()) for number in range(3)} == {False, True}


def test_ties_are_drawn():
    """Of two inputs, some elements are equal, and some lie between two whole numbers."""
    model = chain(("Greater", ["z"]), output=BOOL, more=[("z", FLOAT, [1, 64])])
    inputs = drawn(model, number=2)
    assert (inputs["x"] == inputs["z"]).any()
    assert (np.abs(inputs["x"] - np.trunc(inputs["x"])) == 0.5).any()


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([("Tanh", [])], ["nan", "inf", "-inf"]),
        ([("MatMul", ["matrix"])], ["nan"]),
        ([("ReduceMax", [])], []),
        ([("MatMul", ["matrix"]), ("ReduceMax", [])], []),
    ],
    ids=lambda steps: " ".join(step[0] for step in steps) if isinstance(steps, list) else "",
)
def test_exceptional_numbers_go_where_order_does_not_matter(steps, found):
    """A sum of infinities depends on the order of its terms; a maximum beside a NaN on where that is."""
    model = chain(*steps)
    rng = np.random.default_rng(0)
    inputs = exceptional_inputs(drawn(model), rng, uses_of(model))
    assert [str(each["x"][~np.isfinite(each["x"])][0]) for each in inputs] == found


@settings(max_examples=150)
@given(
    use=st.builds(
        Use,
        index=st.sampled_from([None, (0, 0), (0, 6), (1, 40)]),
        domain=st.sampled_from([(-np.inf, np.inf), (0.0, np.inf), (-1.0, 1.0)]),
        is_mask=st.booleans(),
        is_divisor=st.booleans(),
        is_whole=st.booleans(),
        turns=st.frozensets(st.sampled_from([0.0, -0.0, 1e-45, 6.0, 1e30, 3.4e38, -(2.0**63), 2.0**64])),
        near=st.frozensets(st.sampled_from([0.0, 7.0, 1e5])),
        reach=st.sampled_from([0.0, 6.0, 1e9]),
        is_count=st.booleans(),
        is_summed=st.booleans(),
    ),
    element=st.sampled_from(
        [FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE, INT8, INT64, UINT8, TensorProto.UINT64, BOOL]
    ),
    shape=st.sampled_from([(), (1,), (2, 0), (2, 3), (40,)]),
    number=st.integers(0, 5),
    loudness=st.sampled_from([1.0, 4.0, 256.0]),
)
def test_whatever_the_use_an_array_of_the_declared_type_and_shape_is_drawn(use, element, shape, number, loudness):
    """With indices in their table and divisors that are not zero; and the same ones from the same seed."""
    model = build_model([helper.make_node("Identity", ["x"], ["y"])], [("x", element, shape)], [("y", element, shape)])
    first, again = (
        revealing_inputs(model, np.random.default_rng(3), Manner(number, loudness), uses={"x": use})["x"]
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first.dtype, first.shape) == (helper.tensor_dtype_to_np_dtype(element), shape)
    if use.index is not None and first.dtype.kind != "b":
        assert use.index[0] <= first.min(initial=use.index[0])
        assert first.max(initial=use.index[1]) <= use.index[1]
    elif use.is_divisor and first.dtype.kind in "iu" and not use.is_mask:
        assert first.all()
    if first.dtype.kind == "f":
        assert np.isfinite(first).all() or first.dtype == np.float16
