"""Names, order, types and shapes of inputs and outputs must stay."""

from onnx import TensorProto
from support.small_models import one_node

from rlflow.equivalence.compare import compare


def test_names_and_order_of_outputs_matter(float_pair):
    original = float_pair()
    assert compare(original, float_pair()).equivalent
    renamed = compare(original, float_pair(names=("first", "third")))
    assert not renamed.equivalent
    assert renamed.reason == "outputs are ['first', 'third'], should be ['first', 'second']"
    swapped = compare(original, float_pair(("Neg", "Relu"), ("second", "first")))
    assert not swapped.equivalent
    assert "['second', 'first']" in swapped.reason
    exchanged = compare(original, float_pair(("Neg", "Relu")))
    assert not exchanged.equivalent
    assert "differs by" in exchanged.reason


def test_declared_types_and_shapes_matter(make_model):
    original = one_node(make_model, "Relu")
    wider = one_node(make_model, "Relu", element=TensorProto.DOUBLE)
    assert compare(original, wider).reason == "input 'x' is declared DOUBLE[4, 5], should be FLOAT[4, 5]"
    cast = one_node(make_model, "Cast", output=TensorProto.DOUBLE, to=TensorProto.DOUBLE)
    assert compare(original, cast).reason == "output 'y' is declared DOUBLE[4, 5], should be FLOAT[4, 5]"
    dynamic = one_node(make_model, "Relu", shape=("batch", 5))
    assert "should be FLOAT['batch', 5]" in compare(dynamic, original).reason
    assert "FLOAT['batch', 5]" in compare(original, dynamic).reason
    other_name = one_node(make_model, "Relu", shape=("n", 5))
    assert not compare(dynamic, other_name).equivalent
    unknown = one_node(make_model, "Relu", shape=(None, 5))
    assert compare(unknown, dynamic).equivalent
