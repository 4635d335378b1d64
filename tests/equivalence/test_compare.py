import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper, parser
from support.small_models import FLOAT, one_node, scaled_by
from support.zoo_names import SMALL, ZOO

from rlflow import zoo
from rlflow.cost.analytic import AnalyticCost
from rlflow.equivalence.compare import compare, compare_with_itself
from rlflow.equivalence.float64_check import INCONCLUSIVE_FACTOR
from rlflow.equivalence.reference import reference_of, run_original
from rlflow.equivalence.tolerance import TOLERANCE_EPSILONS
from rlflow.errors import InputError, RLFlowError
from rlflow.method import Budget
from rlflow.onnx_io import from_onnx, to_onnx
from rlflow.rules.library import load
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.runtimes import open_model
from rlflow.search.greedy import Greedy


@pytest.mark.parametrize("setting", ["as_written", "deployed"])
def test_a_model_equals_itself(make_dense, setting):
    report = compare(make_dense(), make_dense(), setting=setting)
    assert report.equivalent
    assert report.reason == ""
    assert report.max_relative_error == report.max_absolute_error == 0
    assert (report.draws, report.non_vacuous_draws, report.vacuous_outputs) == (3, 3, ())
    assert not report.is_inconclusive
    assert "3 of 3 draws informative" in report.summary


def test_reassociated_matmuls_are_equal_but_not_bitwise(make_model):
    rng = np.random.default_rng(0)
    weights = {
        "a": rng.standard_normal((256, 256), np.float32),
        "b": rng.standard_normal((256, 256), np.float32),
    }
    declarations = [("x", FLOAT, [16, 256])], [("y", FLOAT, [16, 256])], weights
    left = [helper.make_node("MatMul", ["x", "a"], ["xa"]), helper.make_node("MatMul", ["xa", "b"], ["y"])]
    right = [helper.make_node("MatMul", ["a", "b"], ["ab"]), helper.make_node("MatMul", ["x", "ab"], ["y"])]
    report = compare(make_model(left, *declarations), make_model(right, *declarations))
    assert report.equivalent
    assert 0 < report.max_relative_error < report.tolerance


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_weight_just_above_the_tolerance_fails_and_just_below_passes(make_model, dtype):
    """No reduction, so the tolerance is 16 epsilon and 1 + 20 epsilon is the smallest of faults."""
    epsilon = np.finfo(dtype).eps
    original = scaled_by(make_model, 1.0, dtype)
    assert compare(original, original).tolerance == TOLERANCE_EPSILONS * epsilon
    below = compare(original, scaled_by(make_model, 1 + 12 * epsilon, dtype))
    above = compare(original, scaled_by(make_model, 1 + 20 * epsilon, dtype))
    assert below.equivalent
    assert below.max_relative_error > 0
    assert not above.equivalent
    assert above.is_inconclusive == (dtype is np.float64), "nothing is wider than float64, so nothing settles it there"
    assert ("rounding" if dtype is np.float64 else "in float64 they differ by") in above.summary
    assert above.worst_output == "y"
    assert above.max_relative_error == pytest.approx(20 * epsilon, rel=0.1)
    assert f"{above.max_relative_error:.2e}" in above.reason


def test_where_there_is_no_time_one_input_is_drawn(make_dense):
    """The first of those that are drawn otherwise. Not vacuous: it tells a wrong model from a right one."""
    model = make_dense()
    session = open_model(model, "as_written")
    hurried = run_original(model, session, draws=3, drawing_s=0.0)
    assert (len(hurried.inputs), len(run_original(model, session, draws=3).inputs)) == (1, 3)
    report = compare(model, make_dense(), reference=hurried)
    assert report.equivalent
    assert (report.draws, report.non_vacuous_draws) == (1, 1)
    assert not compare(model, make_dense(scale=1 + 1e-3), reference=hurried).equivalent


def test_what_the_original_computes_may_be_known(make_dense):
    """The verdicts are those of a comparison that runs it; the original itself is not looked at."""
    model, wrong = make_dense(), make_dense(scale=1 + 1e-2)
    reference = reference_of(model, seed=5)
    for candidate in (model, wrong):
        assert compare(model, candidate, reference=reference) == compare(model, candidate, seed=5)
    assert compare(wrong, wrong, reference=reference) == compare(model, wrong, seed=5)


def test_a_model_is_compared_with_itself_by_running_it_twice(make_dense):
    """Not vacuous: of a session that computes something else, the same is said as of another model."""
    model, wrong = make_dense(), make_dense(scale=1 + 1e-2)
    session = open_model(model, "as_written")
    reference = run_original(model, session)
    assert compare_with_itself(model, session, reference).equivalent
    other = compare_with_itself(model, open_model(wrong, "as_written"), reference)
    assert not other.equivalent
    assert other.max_relative_error == compare(model, wrong).max_relative_error


@pytest.mark.fuzz
@pytest.mark.parametrize("name", ZOO)
def test_what_greedy_search_makes_of_a_model_is_equivalent(name):
    """At NaN and infinities, too, where these say something."""
    model, rules = zoo.build(name, **SMALL.get(name, {})), load()
    found = Greedy(rules, Rewriter(rules.rules), AnalyticCost()).optimise(from_onnx(model), Budget(time_s=20.0))
    assert found.trajectory.steps or name in ("mlp", "vgg19"), "not vacuous: it was rewritten"
    for seed in range(3):
        report = compare(model, to_onnx(found.best), seed=seed, exceptional=True)
        assert report.equivalent, report.summary


def test_one_perturbed_weight_of_a_matrix_fails(make_dense):
    report = compare(make_dense(), make_dense(scale=1 + 1e-3))
    assert not report.equivalent
    assert 0 < report.max_absolute_error < 1e-1


def test_a_large_fault_is_not_inconclusive(make_model):
    report = compare(scaled_by(make_model, 1.0), scaled_by(make_model, 1.1))
    assert not report.equivalent
    assert not report.is_inconclusive
    assert "rounding" not in report.summary
    assert report.max_relative_error > INCONCLUSIVE_FACTOR * report.tolerance


def test_shapes_that_only_running_reveals_matter(make_model):
    def transposed(permutation):
        return make_model(
            [helper.make_node("Transpose", ["x"], ["y"], perm=permutation)],
            [("x", FLOAT, ["a", "b"])],
            [("y", FLOAT, None)],
        )

    report = compare(transposed([1, 0]), transposed([0, 1]))
    assert not report.equivalent
    assert report.reason == "output 'y' is float32[2, 3], should be float32[3, 2]"


def test_symbolic_dimensions_fall_back_to_equal_and_to_larger_sizes(make_model):
    square = make_model(
        [helper.make_node("Add", ["x", "z"], ["y"])],
        [("x", FLOAT, ["n"]), ("z", FLOAT, ["m"])],
        [("y", FLOAT, None)],
    )
    assert compare(square, square).equivalent
    pool = one_node(make_model, "MaxPool", shape=(1, 1, "height", "width"), kernel_shape=[9, 9])
    del pool.graph.output[0].type.tensor_type.shape.dim[:]
    pool.graph.output[0].type.tensor_type.ClearField("shape")
    assert compare(pool, pool).non_vacuous_draws == 3
    assert compare(pool, pool, dimensions={"height": 10, "width": 11}).equivalent


@pytest.mark.parametrize(
    ("nodes", "weights"),
    [
        ([helper.make_node("Mul", ["x", "w"], ["y"])], {"w": np.zeros((), np.float32)}),
        ([helper.make_node("Mul", ["x", "w"], ["y"])], {"w": np.array(np.nan, np.float32)}),
        (
            [helper.make_node("Sub", ["x", "x"], ["z"]), helper.make_node("Add", ["z", "w"], ["y"])],
            {"w": np.float32(3)},
        ),
    ],
    ids=["all zero", "all NaN", "constant"],
)
def test_vacuous_draws_are_counted_as_such(make_model, nodes, weights):
    model = make_model(
        nodes, [("x", FLOAT, [4, 5])], [("y", FLOAT, [4, 5])], {k: np.asarray(v) for k, v in weights.items()}
    )
    report = compare(model, model, draws=4)
    assert report.equivalent
    assert (report.draws, report.non_vacuous_draws, report.vacuous_outputs) == (4, 0, ("y",))


def test_a_vacuous_output_beside_a_live_one_is_named(make_model):
    model = make_model(
        [helper.make_node("Relu", ["x"], ["live"]), helper.make_node("Sub", ["x", "x"], ["dead"])],
        [("x", FLOAT, [4])],
        [("live", FLOAT, [4]), ("dead", FLOAT, [4])],
    )
    report = compare(model, model)
    assert (report.non_vacuous_draws, report.vacuous_outputs) == (3, ("dead",))


def test_an_optimised_model_that_does_not_load_is_not_equivalent(make_model):
    report = compare(one_node(make_model, "Relu"), one_node(make_model, "NoSuchOperator"))
    assert not report.equivalent
    assert "could not load" in report.reason
    with pytest.raises(RLFlowError, match="could not load"):
        compare(one_node(make_model, "NoSuchOperator"), one_node(make_model, "Relu"))


def test_an_original_that_never_runs_asks_for_dimensions(make_model):
    model = make_model(
        [helper.make_node("Reshape", ["x", "shape"], ["y"])],
        [("x", FLOAT, ["n"])],
        [("y", FLOAT, [3, 7])],
        {"shape": np.array([3, 7])},
    )
    with pytest.raises(RLFlowError, match="runs on no drawn input; give values to its symbolic dimensions n"):
        compare(model, model)
    assert compare(model, model, dimensions={"n": 21}).equivalent
    with pytest.raises(InputError, match="draws is 0"):
        compare(model, model, draws=0)


def test_an_original_of_many_symbolic_dimensions_that_never_runs(make_model):
    """At the larger sizes that are tried, its input would take 20 TB."""
    node = helper.make_node("Squeeze", ["x"], ["y"], axes=[0])
    symbols = [("x", FLOAT, list("abcde"))]
    model = make_model([node], symbols, [("y", FLOAT, list("bcde"))], opset=11)
    with pytest.raises(RLFlowError, match="runs on no drawn input; give values to its symbolic dimensions a, b"):
        compare(model, model)


def test_same_seed_same_report(make_dense):
    first, second = (compare(make_dense(), make_dense(scale=1.01), seed=5) for _ in range(2))
    assert first == second
    assert first != compare(make_dense(), make_dense(scale=1.01), seed=6)


CENTRED = """
    <ir_version: 8, opset_import: ["" : 17]>
    centred (float[64, 64] x) => (float[64, 64] y) <float two = {{2}}, float small = {{0.00001}}> {{
        m = ReduceMean <axes = [-1], keepdims = 0> (x)
        d = Sub(x, m)
        q = Pow(d, two)
        {squares}
        v = ReduceMean <axes = [-1], keepdims = 0> (r)
        e = Add(v, small)
        s = Sqrt(e)
        n = Div(d, s)
        y = Mul(n, g)
    }}
"""
"""Columns less the means of rows: ONNX Runtime takes it for a layer norm where it sees the whole pattern."""


def centred(squares: str):
    model = parser.parse_model(CENTRED.format(squares=squares))
    weight = np.random.default_rng(0).standard_normal(64, np.float32)
    model.graph.initializer.append(numpy_helper.from_array(weight, "g"))
    return model


HIDDEN = centred("h = Neg(q) r = Neg(h)")
FUSED = centred("r = Identity(q)")


def test_a_fusion_that_is_wrong_is_seen_as_deployed():
    """As written both compute the same, to the bit; the other way round, it is the original that is wrong."""
    assert compare(HIDDEN, FUSED, setting="as_written").max_relative_error == 0
    report = compare(HIDDEN, FUSED)
    assert not report.equivalent
    assert report.worst_setting == "deployed"
    assert report.reason.endswith(", as deployed")
    assert {setting: each.equivalent for setting, each in report.by_setting.items()} == {
        "as_written": True,
        "deployed": False,
    }
    assert not compare(HIDDEN, FUSED, setting="deployed").equivalent
    assert report.own_error <= report.tolerance
    assert "itself" not in report.summary


def test_an_original_that_differs_by_setting_is_told_and_may_be_mended():
    """What computes as the original as written, or as the original as deployed, is no farther off than that."""
    itself, mended = compare(FUSED, FUSED), compare(FUSED, HIDDEN)
    for report in (itself, mended):
        assert report.equivalent
        assert report.differs_by_setting
        assert f"the original itself differs by {report.own_error:.1e} between as written and as deployed" in (
            report.summary
        )
    assert itself.by_setting["deployed"].max_relative_error == itself.own_error > itself.tolerance
    assert mended.by_setting["deployed"].max_relative_error <= mended.tolerance


def test_a_model_that_one_setting_refuses_is_not_equivalent(make_model):
    """Relu beside Clip in float64: ONNX Runtime loads it as written alone."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Clip", ["r", "lo", "hi"], ["y"])]
    ends = {"lo": np.float64(-1), "hi": np.float64(1)}
    ports = [("x", TensorProto.DOUBLE, [4])], [("y", TensorProto.DOUBLE, [4])]
    refused = make_model(nodes, *ports, ends)
    between = [helper.make_node("Neg", ["r"], ["p"]), helper.make_node("Neg", ["p"], ["q"])]
    apart = make_model([nodes[0], *between, helper.make_node("Clip", ["q", "lo", "hi"], ["y"])], *ports, ends)
    assert compare(apart, refused, setting="as_written").equivalent
    report = compare(apart, refused)
    assert (report.equivalent, report.is_run, report.worst_setting) == (False, False, "deployed")
    with pytest.raises(RLFlowError, match=r"as deployed, .* it can still be compared as written alone"):
        compare(refused, apart)
