"""A model in float64: every type is widened, and a nudge is half an epsilon."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from rlflow.equivalence.float64 import in_float64, nudged, run_in_float64
from rlflow.errors import RLFlowError
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.session import open_session, run
from rlflow.zoo import build

FLOAT, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE
SMALL = {
    "bert": {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "vocabulary": 50},
    "conv": {},
    "loop": {},
    "mlp": {},
    "squeezenet1_1": {"width": 4, "image": 64, "classes": 10},
    "vit": {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "image": 32, "classes": 10},
}


@pytest.mark.parametrize("name", SMALL)
def test_real_models_run_in_double(name):
    """Without a kernel (Conv, Erf), with a subgraph, with a mask: as close to float32 as rounding leaves it.

    Nearer than a tenth of an epsilon would mean that it had been computed in float32, too.
    """
    model = build(name, **SMALL[name])
    inputs = draw_inputs(model, np.random.default_rng(0))
    narrow = run(open_session(model, "as_written"), inputs)
    (wide,) = run_in_float64(in_float64(model), [inputs])
    for output, expected in wide.items():
        assert expected.dtype == np.float64
        error = np.abs(expected - narrow[output]).max() / np.abs(expected).max()
        assert 1e-8 < error < 1e-5


def test_every_place_that_names_a_type_is_widened(make_model):
    """Casts, constants of three kinds, a body, and the defaults that a node does not write."""
    body = helper.make_graph(
        [helper.make_node("Add", ["x", "third"], ["inner"])],
        "body",
        [],
        [helper.make_tensor_value_info("inner", FLOAT, [3])],
    )
    model = make_model(
        [
            helper.make_node("Constant", [], ["third"], value_float=1 / 3),
            helper.make_node("Constant", [], ["list"], value_floats=[0.5, 1.5, 2.5]),
            helper.make_node(
                "Constant", [], ["tensor"], value=helper.make_tensor("t", TensorProto.FLOAT16, [], [0.25])
            ),
            helper.make_node("Cast", ["tensor"], ["quarter"], to=FLOAT),
            helper.make_node("ConstantOfShape", ["size"], ["zeros"]),
            helper.make_node("If", ["flag"], ["chosen"], then_branch=body, else_branch=body),
            helper.make_node("Sum", ["chosen", "list", "quarter", "zeros"], ["y"]),
        ],
        [("x", FLOAT, [3]), ("flag", TensorProto.BOOL, [])],
        [("y", FLOAT, [3])],
        {"size": np.array([3])},
    )
    x = np.array([1, 10, 100], np.float32)
    (outputs,) = run_in_float64(in_float64(model), [{"x": x, "flag": np.array(True)}])
    np.testing.assert_allclose(
        outputs["y"], x.astype(np.float64) + float(np.float32(1 / 3)) + np.array([0.75, 1.75, 2.75]), rtol=1e-14
    )
    assert model.graph.input[0].type.tensor_type.elem_type == FLOAT, "the model given is left alone"


def test_a_nudge_is_half_an_epsilon_of_every_number_but_literals_and_those_spared(make_model):
    stored = {"w": np.arange(1, 9, dtype=np.float32), "v": np.ones(8, np.float32), "t": np.float32(2)}
    model = make_model(
        [helper.make_node("Mul", [a, b], [c]) for a, b, c in ("xwz", "zvu", "uty")],
        [("x", FLOAT, [8])],
        [("y", FLOAT, [8])],
        stored,
    )
    x = {"x": np.ones(8, np.float32)}
    double = in_float64(model)
    moved = nudged(double, {np.ones(8).tobytes()}, 2.0**-23, np.random.default_rng(0))
    (before,), (after,) = run_in_float64(double, [x]), run_in_float64(moved, [x])
    np.testing.assert_allclose(np.abs(after["y"] / before["y"] - 1), 2.0**-24, rtol=1e-6)


def test_what_nothing_can_run_is_refused_with_all_reasons(make_model):
    model = make_model([helper.make_node("NoSuch", ["x"], ["y"])], [("x", FLOAT, [1])], [("y", FLOAT, [1])])
    with pytest.raises(RLFlowError, match=r"no float64 reference: .*; .*; "):
        run_in_float64(in_float64(model), [{"x": np.ones(1)}])
