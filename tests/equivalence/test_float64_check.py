"""Where float32 is inconclusive, float64 tells rounding from a fault."""

import numpy as np
import pytest
from onnx import TensorProto, helper

from rlflow.equivalence.compare import compare
from rlflow.equivalence.float64 import in_float64, nudged, run_in_float64
from rlflow.equivalence.float64_check import INCONCLUSIVE_FACTOR, WORSE_FACTOR
from rlflow.errors import RLFlowError
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.session import open_session, run
from rlflow.zoo import build

FLOAT, DOUBLE = TensorProto.FLOAT, TensorProto.DOUBLE


def there_and_back(make_model, far, factor=1.0):
    """y = ((x + far) - far) * factor: over the reals x * factor, in float32 with the rounding of numbers near `far`."""
    nodes = [("Add", ["x", "far"], ["up"]), ("Sub", ["up", "far"], ["down"]), ("Mul", ["down", "factor"], ["y"])]
    stored = {"far": np.array([far], np.float32), "factor": np.array([factor], np.float32)}
    return make_model(
        [helper.make_node(*node) for node in nodes], [("x", FLOAT, [8, 8])], [("y", FLOAT, [8, 8])], stored
    )


def products(make_model, *weights):
    names = [f"w{i}" for i in range(len(weights))]
    values = ["x", *(f"v{i}" for i in range(1, len(weights))), "y"]
    nodes = [helper.make_node("MatMul", [values[i], name], [values[i + 1]]) for i, name in enumerate(names)]
    width = weights[0].shape[0]
    return make_model(
        nodes,
        [("x", FLOAT, [16, width])],
        [("y", FLOAT, [16, width])],
        dict(zip(names, weights, strict=True)),
    )


@pytest.fixture(scope="module")
def ill_conditioned():
    """A (32, 32) of condition 1000, and its inverse, both rounded to float32: their product is about 1."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.standard_normal((32, 32)))[0] for _ in range(2))
    singular = np.geomspace(1, 1000, 32)
    return ((left * singular) @ right).astype(np.float32), ((right.T / singular) @ left.T).astype(np.float32)


def test_equal_over_the_reals_is_accepted_with_the_reason(make_model):
    """In float32 alone this is a failure: the error is far above the tolerance."""
    report = compare(there_and_back(make_model, 1000), there_and_back(make_model, 3000))
    assert report.max_relative_error > 5 * report.tolerance
    assert report.equivalent
    assert not report.is_inconclusive
    assert report.float64.difference <= report.float64.allowed < 1e-12
    assert "in float64 they differ by" in report.reason
    assert report.reason in report.summary
    assert 0 < report.float64.original_error < 1e-3


def test_the_side_that_is_further_from_the_truth_is_named(make_model):
    """Less rounding is welcome; more than ten times as much is not, equal over the reals or not."""
    rough, fine = there_and_back(make_model, 1500), there_and_back(make_model, 1)
    better = compare(rough, fine)
    assert better.equivalent
    assert better.float64.further == "original"
    assert better.float64.original_error > WORSE_FACTOR * better.float64.candidate_error
    worse = compare(fine, rough)
    assert not worse.equivalent
    assert not worse.is_inconclusive
    assert worse.float64.further == "candidate"
    assert worse.float64.difference <= worse.float64.allowed
    assert "the candidate is further from it" in worse.reason


def test_a_small_fault_does_not_hide_behind_bad_conditioning(make_model):
    """One part in ten thousand is less than ten times this model's own rounding, and still no rounding."""
    report = compare(there_and_back(make_model, 1000), there_and_back(make_model, 1000, factor=1 + 1e-4))
    assert report.tolerance < report.max_relative_error < INCONCLUSIVE_FACTOR * report.tolerance
    assert report.float64.candidate_error < WORSE_FACTOR * report.float64.original_error
    assert not report.equivalent
    assert report.float64.difference == pytest.approx(1e-4, rel=0.01)


def test_a_folded_weight_may_be_rounded_once_more(make_model, ill_conditioned):
    """(x @ A) @ B = x @ (A @ B), where A @ B is stored in float32 and so differs in float64, too."""
    a, b = ill_conditioned
    folded = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32)
    report = compare(products(make_model, a, b), products(make_model, folded))
    assert report.max_relative_error > report.tolerance
    assert report.float64.difference > 1e-9, "otherwise nothing had been rounded"
    assert report.equivalent


def test_a_changed_weight_is_no_rounding(make_model, ill_conditioned):
    """A weight off by 1e-4 of itself: too little for float32 to be sure, too much for a rounding."""
    a, b = ill_conditioned
    spoiled = b.copy()
    spoiled[:, 0] *= 1 + 1e-4
    report = compare(products(make_model, a, b), products(make_model, a, spoiled))
    assert report.tolerance < report.max_relative_error < INCONCLUSIVE_FACTOR * report.tolerance
    assert report.float64 is not None
    assert not report.equivalent
    assert compare(products(make_model, a, b), products(make_model, a, b)).equivalent


def test_without_a_float64_reference_it_stays_inconclusive(make_model):
    """An operator of ONNX Runtime's own that has no float64 kernel and that no interpreter knows."""

    def model(factor):
        made = make_model(
            [
                helper.make_node("SampleOp", ["x"], ["q"], domain="com.microsoft"),
                helper.make_node("Mul", ["q", "f"], ["y"]),
            ],
            [("x", FLOAT, [4, 4])],
            [("y", FLOAT, [4, 4])],
            {"f": np.float32(factor)},
        )
        made.opset_import.add(domain="com.microsoft", version=1)
        return made

    report = compare(model(1), model(1 + 1e-5))
    assert report.is_inconclusive
    assert report.float64 is None
    assert "rounding in a badly conditioned model could explain so little" in report.summary


SMALL = {
    "bert": {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "sequence": 8, "vocabulary": 50},
    "conv": {},
    "loop": {},
    "mlp": {},
    "squeezenet1_1": {"width": 4, "image": 64, "classes": 10},
    "vit": {"layers": 1, "hidden": 32, "heads": 2, "intermediate": 64, "image": 32, "classes": 10},
}


@pytest.mark.parametrize("name", SMALL)
def test_real_models_run_in_float64(name):
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
    widened = in_float64(model)
    moved = nudged(widened, {np.ones(8).tobytes()}, 2.0**-23, np.random.default_rng(0))
    (before,), (after,) = run_in_float64(widened, [x]), run_in_float64(moved, [x])
    np.testing.assert_allclose(np.abs(after["y"] / before["y"] - 1), 2.0**-24, rtol=1e-6)


def test_what_nothing_can_run_is_refused_with_all_reasons(make_model):
    model = make_model([helper.make_node("NoSuch", ["x"], ["y"])], [("x", FLOAT, [1])], [("y", FLOAT, [1])])
    with pytest.raises(RLFlowError, match=r"no float64 reference: .*; .*; "):
        run_in_float64(in_float64(model), [{"x": np.ones(1)}])
