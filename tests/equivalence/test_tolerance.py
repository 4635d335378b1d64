"""The tolerance follows from the float type and from the number of reductions in a row."""

from onnx import TensorProto, helper
from support.small_models import FLOAT, one_node

from rlflow.equivalence.tolerance import TOLERANCE_EPSILONS, tolerance_of


def test_tolerance_grows_with_the_reductions_in_a_row_only(make_model):
    def chain(length, width):
        """`width` parallel chains of `length` Softmax nodes."""
        nodes, outputs = [], []
        for lane in range(width):
            names = ["x", *(f"v{lane}_{i}" for i in range(length))]
            nodes += [helper.make_node("Softmax", [names[i]], [names[i + 1]]) for i in range(length)]
            outputs.append((names[-1], FLOAT, [4]))
        return make_model(nodes, [("x", FLOAT, [4])], outputs)

    unit = TOLERANCE_EPSILONS * 2.0**-23
    assert tolerance_of(chain(3, 1)) == tolerance_of(chain(3, 5)) == 2 * unit
    assert tolerance_of(chain(8, 1)) == 3 * unit


def test_tolerance_follows_the_coarsest_float_type(make_model):
    half = make_model(
        [
            helper.make_node("Cast", ["x"], ["h"], to=TensorProto.FLOAT16),
            helper.make_node("Cast", ["h"], ["y"], to=FLOAT),
        ],
        [("x", FLOAT, [4])],
        [("y", FLOAT, [4])],
    )
    assert tolerance_of(half) == TOLERANCE_EPSILONS * 2.0**-10
    assert tolerance_of(one_node(make_model, "Neg", element=TensorProto.INT64)) == 0
