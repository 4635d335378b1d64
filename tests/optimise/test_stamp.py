"""A stamp is found again in the file that was written, and says nothing any more of a model that was changed since."""

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

from rlflow import zoo
from rlflow.onnx_io import load_model, save_model
from rlflow.optimise.stamp import KEY, is_stamped, stamped


@pytest.fixture
def model() -> ModelProto:
    model = zoo.build("mlp")
    model.metadata_props.add(key="author", value="somebody")
    return model


def test_a_stamp_is_all_that_is_added_and_outlasts_a_file(model: ModelProto, tmp_path: Path) -> None:
    before = model.SerializeToString(deterministic=True)
    save_model(stamped(model), tmp_path / "model.onnx")
    marked = load_model(tmp_path / "model.onnx")
    onnx.checker.check_model(marked)
    assert is_stamped(marked)
    assert not is_stamped(model)
    assert marked.metadata_props.pop().key == KEY
    assert marked.SerializeToString(deterministic=True) == before == model.SerializeToString(deterministic=True)


def test_whatever_is_changed_voids_it(model: ModelProto) -> None:
    """The weights, the graph, other metadata, or the stamp itself; and it can be given anew."""

    def changed() -> ModelProto:
        return stamped(model)

    weight, node, author, lie, twice = changed(), changed(), changed(), changed(), changed()
    data = bytearray(weight.graph.initializer[0].raw_data)
    data[-1] ^= 1
    weight.graph.initializer[0].raw_data = bytes(data)
    node.graph.node[0].name += "_"
    author.metadata_props[0].value = "somebody else"
    lie.metadata_props[-1].value = "0" * 64
    twice.metadata_props.add(key=KEY, value="0" * 64)
    assert not any(map(is_stamped, (weight, node, author, lie, twice)))
    assert all(is_stamped(stamped(each)) for each in (weight, node, author, lie, twice))


def test_the_same_model_has_the_same_stamp(model: ModelProto) -> None:
    copy = ModelProto.FromString(model.SerializeToString())
    assert stamped(copy) == stamped(model) == stamped(stamped(model))
