"""Which values an input is for, read off what the model does with it; and that such values are drawn."""

import math

import numpy as np
import pytest
from onnx import TensorProto, helper
from support.drawn_inputs import drawn_inputs

from rlflow.equivalence.compare import compare
from rlflow.ops.use import NO_USE, Use
from rlflow.runtime.input_domains import uses_of
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.session import open_session, run
from rlflow.zoo import build

BOOL, FLOAT, INT64, UINT8 = TensorProto.BOOL, TensorProto.FLOAT, TensorProto.INT64, TensorProto.UINT8
POSITIVE = (0.0, math.inf)
SEVENS = {"table": np.arange(21, dtype=np.float32).reshape(7, 3), "big": np.ones((40, 3), np.float32)}


@pytest.fixture
def chain(make_model):
    """A model that sends x (200, 4) through nodes (operator, other operands, attributes), to y."""

    def build_chain(*steps, element=FLOAT, output=FLOAT, stored=None):
        values = ["x", *(f"v{i}" for i in range(1, len(steps))), "y"]
        nodes = []
        for number, (operator, operands, *attributes) in enumerate(steps):
            names = [values[number] if name == "." else name for name in operands]
            nodes.append(helper.make_node(operator, names, [values[number + 1]], **dict(*attributes)))
        return make_model(nodes, [("x", element, [200, 4])], [("y", output, None)], stored)

    return build_chain


def use(model, name="x"):
    return uses_of(model).get(name, NO_USE)


def draw(model, seed=0):
    return draw_inputs(model, np.random.default_rng(seed))["x"]


@pytest.mark.parametrize(
    ("operator", "domain"),
    [("Log", POSITIVE), ("Sqrt", POSITIVE), ("Asin", (-1, 1)), ("Acos", (-1, 1)), ("Atanh", (-1, 1))],
)
def test_a_function_is_asked_where_it_is_defined(chain, operator, domain):
    model = chain((operator, ["."]))
    assert use(model).domain == domain
    values = draw(model)
    assert domain[0] < values.min() < values.max() < domain[1]
    assert np.isfinite(run(open_session(model, "as_written"), {"x": values})["y"]).all()
    assert values.std() > 0.2, "spread over the domain, not one point of it"


def test_acosh_begins_at_one(chain):
    assert draw(chain(("Acosh", ["."]))).min() > 1


STORED = {
    "eps": np.float32(1e-5),
    "three": np.float32(3),
    "half": np.float32(0.5),
    "shape": np.array([800]),
    "axis": np.array([1]),
}


@pytest.mark.parametrize(
    ("steps", "domain"),
    [
        ([("Identity", ["."]), ("Reshape", [".", "shape"]), ("Log", ["."])], POSITIVE),
        ([("Add", [".", "eps"]), ("Sqrt", ["."])], POSITIVE),
        ([("Add", ["eps", "."]), ("Sqrt", ["."])], POSITIVE),
        ([("Sub", [".", "three"]), ("Sqrt", ["."])], (3, math.inf)),
        ([("Mul", ["half", "."]), ("Div", [".", "three"]), ("Log", ["."])], POSITIVE),
        ([("ReduceMean", ["."], {"axes": [1]}), ("Log", ["."])], POSITIVE),
        ([("Pow", [".", "half"])], POSITIVE),
        ([("Pow", [".", "three"])], NO_USE.domain),
        ([("Mul", [".", "."]), ("Sqrt", ["."])], NO_USE.domain),
        ([("Abs", ["."]), ("Log", ["."])], NO_USE.domain),
        ([("Max", [".", "eps"]), ("Log", ["."])], NO_USE.domain),
    ],
    ids=lambda steps: " ".join(step[0] for step in steps) if isinstance(steps, list) else "",
)
def test_a_domain_is_traced_back_as_far_as_it_holds(chain, steps, domain):
    """And no further: sqrt(x * x) is defined for negative x, and a rewrite to x must not pass."""
    model = chain(*steps, stored=STORED)
    assert use(model).domain == domain
    if domain != NO_USE.domain:
        assert np.isfinite(run(open_session(model, "as_written"), {"x": draw(model)})["y"]).all()


def test_what_is_wrong_outside_of_the_domain_only_still_shows(chain, make_model):
    """log(x) beside max(x, 0): where x is positive the latter is x. One of three draws leaves the domain."""

    def model(other):
        nodes = [helper.make_node("Log", ["x"], ["y"]), helper.make_node(other, ["x"], ["z"])]
        return make_model(nodes, [("x", FLOAT, [8])], [("y", FLOAT, [8]), ("z", FLOAT, [8])])

    signs = [bool((inputs["x"] > 0).all()) for inputs in drawn_inputs(model("Relu"), draws=6)]
    assert signs == [True, True, False, True, True, False]
    by_seed = [bool((drawn_inputs(model("Relu"), draws=1, seed=seed)[0]["x"] > 0).all()) for seed in range(6)]
    assert by_seed == signs
    assert compare(model("Relu"), model("Identity"), draws=2).equivalent, "which is why there is a third"
    assert not compare(model("Relu"), model("Identity")).equivalent


@pytest.mark.parametrize("steps", [[("Div", ["three", "."])], [("Reciprocal", ["."])], [("Mod", ["three", "."])]])
def test_what_divides_is_of_either_sign_and_not_near_zero(chain, steps):
    if steps[0][0] == "Mod":
        steps = [("Mod", ["three", "."], {"fmod": 1})]
    values = draw(chain(*steps, stored=STORED))
    assert 0.05 < np.abs(values).min()
    assert 0.3 < (values > 0).mean() < 0.7


@pytest.mark.parametrize(
    "steps",
    [
        [("Gather", ["table", "."])],
        [("Cast", ["."], {"to": TensorProto.INT32}), ("Gather", ["table", "."])],
        [("Reshape", [".", "shape"]), ("Unsqueeze", [".", "axis"]), ("Gather", ["table", "."])],
        [("Clip", [".", "", "many"]), ("Gather", ["table", "."])],
        [("Gather", [".", "firsts"], {"axis": 1}), ("Gather", ["table", "."])],
        [("Concat", [".", "."], {"axis": 0}), ("Gather", ["table", "."])],
    ],
    ids=lambda steps: " ".join(step[0] for step in steps),
)
def test_token_ids_cover_their_table_through_whatever_hands_them_on(chain, steps):
    stored = SEVENS | {
        "shape": np.array([800]),
        "axis": np.array([1]),
        "many": np.array(99),
        "firsts": np.array([0, 2]),
    }
    model = chain(*steps, element=INT64, stored=stored)
    values = draw(model)
    assert set(values.reshape(-1).tolist()) == set(range(7))
    run(open_session(model, "as_written"), {"x": values})


def test_floats_that_are_cast_to_indices_are_whole_numbers_in_the_table(chain):
    model = chain(("Cast", ["."], {"to": INT64}), ("Gather", ["table", "."]), stored=SEVENS)
    assert set(draw(model).reshape(-1).tolist()) == set(range(7))


@pytest.mark.parametrize(("operator", "offset", "expected"), [("Add", 2, range(5)), ("Sub", 2, range(2, 9))])
def test_an_offset_moves_the_rows(chain, operator, offset, expected):
    """Position ids begin at 2 in some models; a number below the offset would read from the end, so none is drawn."""
    stored = SEVENS | {"offset": np.array(offset)}
    model = chain((operator, [".", "offset"]), ("Gather", ["table", "."]), element=INT64, stored=stored)
    values = draw(model)
    assert set(values.reshape(-1).tolist()) == set(expected)
    run(open_session(model, "as_written"), {"x": values})


def test_two_tables_leave_the_smaller(make_model):
    nodes = [helper.make_node("Gather", [table, "x"], [table[0]]) for table in SEVENS]
    model = make_model(nodes, [("x", INT64, [300])], [("t", FLOAT, None), ("b", FLOAT, None)], SEVENS)
    assert use(model).index == (0, 6)


def test_a_table_whose_shape_nobody_declares_is_inferred(make_model):
    """The table is computed, and nothing says its shape: Transpose of (3, 7)."""
    model = make_model(
        [helper.make_node("Transpose", ["t"], ["table"]), helper.make_node("Gather", ["table", "x"], ["y"])],
        [("x", INT64, [300])],
        [("y", FLOAT, None)],
        {"t": np.ones((3, 7), np.float32)},
    )
    assert use(model).index == (0, 6)


def test_indices_reach_a_loop_by_the_name_that_they_have_inside(make_model):
    """The carried value of a Loop looks up the table; its formal name is another than the operand's."""
    values = [("step", INT64, []), ("going", BOOL, []), ("carried", INT64, [50])]
    body = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "carried"], ["rows"]),
            helper.make_node("Identity", ["carried"], ["same"]),
            helper.make_node("Identity", ["going"], ["on"]),
        ],
        "body",
        [helper.make_tensor_value_info(*value) for value in values],
        [
            helper.make_tensor_value_info("on", BOOL, []),
            helper.make_tensor_value_info("same", INT64, [50]),
            helper.make_tensor_value_info("rows", FLOAT, [50, 3]),
        ],
    )
    model = make_model(
        [helper.make_node("Loop", ["times", "", "x"], ["last", "y"], body=body)],
        [("x", INT64, [50])],
        [("y", FLOAT, None)],
        SEVENS | {"times": np.array(2)},
    )
    assert use(model).index == (0, 6)
    assert compare(model, model).non_vacuous_draws == 3


MASKING = {"one": np.float32(1), "low": np.float32(-1e4), "zero": np.array(0)}


@pytest.mark.parametrize(
    ("steps", "element", "hidden"),
    [
        ([("Cast", ["."], {"to": FLOAT}), ("Sub", ["one", "."]), ("Mul", [".", "low"])], INT64, 0),
        ([("Sub", ["one", "."]), ("Mul", ["low", "."])], FLOAT, 0),
        ([("Sub", [".", "one"]), ("Mul", [".", "low"])], FLOAT, 0),
        ([("Cast", ["."], {"to": FLOAT}), ("Mul", [".", "low"])], INT64, 1),
        ([("Equal", [".", "zero"])], INT64, 0),
        ([("Cast", ["."], {"to": BOOL})], INT64, 0),
    ],
    ids=lambda steps: " ".join(step[0] for step in steps) if isinstance(steps, list) else "",
)
def test_a_mask_is_known_by_what_is_done_with_it(chain, steps, element, hidden):
    """No name says so. `hidden` is the value that stands for what does not count: at the end of each row."""
    output = BOOL if steps[-1][0] in ("Equal", "Cast") else FLOAT
    values = draw(chain(*steps, element=element, output=output, stored=MASKING))
    assert set(np.unique(values).tolist()) == {0, 1}
    assert (values[:, 0] != hidden).all()
    assert (values[:, -1] == hidden).mean() > 0.5


def test_token_ids_that_are_compared_with_padding_stay_token_ids(make_model):
    model = make_model(
        [helper.make_node("Gather", ["table", "x"], ["y"]), helper.make_node("Equal", ["x", "zero"], ["padding"])],
        [("x", INT64, [300])],
        [("y", FLOAT, None), ("padding", BOOL, None)],
        SEVENS | MASKING,
    )
    assert set(draw(model).tolist()) == set(range(7))


def test_pixels_are_all_bytes_and_normalised_ones_are_normal(chain):
    pixels = draw(chain(("Cast", ["."], {"to": FLOAT}), element=UINT8))
    assert pixels.min() < 16 < 240 < pixels.max()
    quantised = draw(chain(("DequantizeLinear", [".", "one"]), element=TensorProto.INT8, stored={"one": np.float32(1)}))
    assert quantised.min() < -100
    assert quantised.max() > 100
    bytes_that_divide = draw(chain(("Div", ["many", "."]), element=UINT8, output=UINT8, stored={"many": np.uint8(200)}))
    assert bytes_that_divide.min() > 0, "onnxruntime kills the process on integer division by zero"
    image = build("conv", blocks=1)
    assert use(image, image.graph.input[0].name) == Use(is_summed=True, is_mixed=True), "no number is preferred"


def test_classes_and_lengths_keep_within_what_there_is(make_model):
    classes = make_model(
        [helper.make_node("OneHot", ["x", "depth", "ends"], ["y"])],
        [("x", INT64, [300])],
        [("y", FLOAT, None)],
        {"depth": np.array(9), "ends": np.array([0, 1], np.float32)},
    )
    assert set(draw(classes).tolist()) == set(range(9))
    for axes, shape in (({}, [3, 200]), ({"time_axis": 1, "batch_axis": 0}, [200, 3])):
        lengths = make_model(
            [helper.make_node("ReverseSequence", ["data", "x"], ["y"], **axes)],
            [("data", FLOAT, shape), ("x", INT64, [200])],
            [("y", FLOAT, None)],
        )
        assert set(draw(lengths).tolist()) == {1, 2, 3}
        assert compare(lengths, lengths).non_vacuous_draws == 3


@pytest.mark.parametrize("shape", [(), (1,), (2, 0), (2, 3)])
@pytest.mark.parametrize("element", [FLOAT, TensorProto.FLOAT16, INT64, UINT8, BOOL])
@pytest.mark.parametrize(
    "known",
    [
        NO_USE,
        Use(index=(0, 6)),
        Use(domain=POSITIVE),
        Use(domain=(-1, 1)),
        Use(domain=(-math.inf, 3)),
        Use(is_mask=True),
        Use(is_complement=True),
        Use(is_divisor=True),
        Use(is_whole=True),
        Use(sizes=(2, "n")),
    ],
    ids=str,
)
def test_whatever_the_use_an_array_of_the_declared_type_and_shape_is_drawn(make_model, known, element, shape):
    """Scalars among them: a number that is no array is refused by ONNX Runtime."""
    model = make_model([helper.make_node("Identity", ["x"], ["y"])], [("x", element, shape)], [("y", element, shape)])
    inputs = draw_inputs(model, np.random.default_rng(0), uses={"x": known})
    assert isinstance(inputs["x"], np.ndarray)
    assert inputs["x"].dtype == helper.tensor_dtype_to_np_dtype(element)
    np.testing.assert_array_equal(run(open_session(model, "as_written"), inputs)["y"], inputs["x"])
    assert inputs["x"].shape == shape


def test_bert_says_what_its_inputs_are():
    model = build("bert", layers=1, hidden=32, heads=2, intermediate=64, sequence=8, vocabulary=50)
    found = uses_of(model)
    assert found["input_ids"].index == (0, 49)
    assert found["attention_mask"].is_mask


def test_readers_agree_whatever_their_order():
    uses = [Use(index=(0, 6)), Use(index=(2, 40)), Use(domain=POSITIVE), Use(domain=(-1, 1)), Use(is_mask=True)]
    together = NO_USE
    for each in uses:
        together |= each
    assert together == Use(index=(2, 6), domain=(0, 1), is_mask=True)
    backwards = NO_USE
    for each in reversed(uses):
        backwards |= each
    assert backwards == together
    assert together.required() == Use(index=(2, 6)), "what is drawn where the model would not run otherwise"
