"""`rlflow.equivalence` from Python: paths, texts and protos alike, and refusals."""

import onnx
import pytest
from onnx import TensorProto, helper
from support.small_models import scaled

import rlflow as library
from rlflow.errors import InputError


@pytest.mark.slow
def test_from_python_paths_texts_and_protos_are_alike(tmp_path):
    path = scaled(tmp_path / "a.onnx", 2.0, ("n", 4))
    reports = [
        library.equivalence(first, second, seed=1, shapes={"x": (3, 4)})
        for first, second in ((path, path), (str(path), path), (onnx.load(path), str(path)))
    ]
    assert reports[0] == reports[1] == reports[2]
    assert isinstance(reports[0], library.EquivalenceReport)
    assert reports[0].equivalent
    assert library.equivalence(path, path, dimensions={"n": 9}).equivalent
    assert "equivalence" in library.__all__


def test_a_model_that_draws_random_numbers_cannot_be_compared(tmp_path):
    graph = helper.make_graph(
        [helper.make_node("RandomNormal", [], ["y"], shape=[2])],
        "random",
        [],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2])],
    )
    model = helper.make_model(graph, ir_version=10, opset_imports=[helper.make_opsetid("", 17)])
    with pytest.raises(InputError, match="draws random numbers"):
        library.equivalence(model, model)
