"""A model without the weights of another one becomes the same again, to the byte."""

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from rlflow.errors import ModelFormatError
from rlflow.onnx_io.shared_weights import with_weights_of, without_weights_of


def model(**weights: np.ndarray) -> ModelProto:
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", [value], [value], tensors)
    return helper.make_model(graph, ir_version=10)


LARGE, OTHER = np.arange(512, dtype=np.float32), np.ones(512, np.float32)


def test_weights_that_both_have_are_left_out_under_whatever_name() -> None:
    """Not those of the same bytes but another type, nor small ones, nor those that only one has."""
    original = model(a=LARGE, b=LARGE.view(np.int32), small=np.ones(3, np.float32))
    changed = model(c=LARGE, d=LARGE.reshape(8, 64), e=OTHER, f=LARGE.view(np.uint32), g=np.ones(3, np.float32))
    before = changed.SerializeToString()
    small = without_weights_of(changed, original)
    left_out = {weight.name for weight in small.graph.initializer if not weight.raw_data}
    assert left_out == {"c", "d"}
    assert with_weights_of(small, original).SerializeToString() == before == changed.SerializeToString()
    assert small.ByteSize() < changed.ByteSize() - 2 * LARGE.nbytes + 200


def test_a_model_that_has_no_such_weight_is_refused() -> None:
    small = without_weights_of(model(a=LARGE), model(b=LARGE))
    with pytest.raises(ModelFormatError, match="no weight 'b', to which 'a' refers"):
        with_weights_of(small, model(c=LARGE))


def test_what_is_left_can_be_written_and_read(tmp_path) -> None:
    small = without_weights_of(model(a=LARGE), model(b=LARGE))
    onnx.save_model(small, str(tmp_path / "small.onnx"))
    assert onnx.load(str(tmp_path / "small.onnx"), load_external_data=False) == small
