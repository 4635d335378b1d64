"""Bad input: one clear sentence that names the file, and nothing half-written."""

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from support.conformance.damage import EXPORTED, fate_of
from support.conformance.guarded_process import GuardedProcess
from support.onnx_models import Build, build_model, floats
from support.refusals import TINY, assert_one_sentence, unknown_operator

from rlflow.errors import GraphError, InputError, ModelFormatError, RLFlowError
from rlflow.onnx_io import check_model, from_onnx, save_model, saving, to_onnx


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


def test_external_weights_that_are_missing(model: Build, tmp_path: Path) -> None:
    before = model(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        [floats("x", 3)],
        [floats("y", 3)],
        weights={"w": np.ones(3, "f4")},
    )
    path = tmp_path / "model.onnx"
    onnx.save_model(before, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    (tmp_path / "w.bin").unlink()
    with pytest.raises(ModelFormatError, match=r"is not a valid ONNX model: .*w\.bin") as caught:
        from_onnx(path)
    assert_one_sentence(caught.value, path)


def _external(folder: Path, **entries: str) -> Path:
    """A model whose weight of 12 bytes lies beside it, with some of what is said of its place changed."""
    weights = {"w": np.ones(3, np.float32)}
    node = helper.make_node("Add", ["x", "w"], ["y"])
    model = build_model([node], [floats("x", 3)], [floats("y", 3)], weights=weights)
    path = folder / "model.onnx"
    onnx.save_model(model, path, save_as_external_data=True, location="w.bin", size_threshold=0)
    outside = onnx.load(path, load_external_data=False)
    for entry in outside.graph.initializer[0].external_data:
        entry.value = entries.get(entry.key, entry.value)
    path.write_bytes(outside.SerializeToString())
    return path


def test_external_weights_as_they_should_be(tmp_path: Path) -> None:
    """So the tests below see what they change."""
    assert len(to_onnx(from_onnx(_external(tmp_path))).graph.initializer[0].raw_data) == 12


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"length": "8"}, "its data has a size of 8 instead of 12"),
        ({"length": str(2**62), "offset": "4"}, f"its data has a size of {2**62} instead of 12"),
        ({"offset": "4000"}, r"its data would end at byte 4012 of 'w\.bin', which has 12: get the whole file"),
        ({"offset": "-4"}, "the offset of its data is '-4', but must be a whole number of at least 0"),
        ({"length": "twelve"}, "the length of its data is 'twelve', but must be a whole number"),
        ({"location": "../w.bin"}, r"there is no file '\.\./w\.bin', where its data should be"),
        ({"location": "/dev/zero"}, "'/dev/zero' is an absolute path: put the file beside the model"),
        ({"location": "w" * 5000}, "not a valid ONNX model: .*File name too long"),
    ],
)
def test_external_weights_that_are_not_what_they_should_be(tmp_path: Path, entries: dict[str, str], words: str) -> None:
    path = _external(tmp_path, **entries)
    with pytest.raises(ModelFormatError, match=words) as caught:
        from_onnx(path)
    assert_one_sentence(caught.value, path)


def test_a_name_as_long_as_the_file(tmp_path: Path) -> None:
    model = onnx.ModelProto.FromString(TINY)
    model.graph.output[0].name = "x" * 5000
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelFormatError, match=r"is not a valid ONNX model: .*xxx \.\.\.$") as caught:
        from_onnx(path)
    assert_one_sentence(caught.value, path)


def test_a_vector_longer_than_the_memory(tmp_path: Path) -> None:
    """ONNX's shape inference counts up to the length of a vector of axes: 35 GB for this one."""
    vectors = [helper.make_tensor_value_info(name, onnx.TensorProto.INT64, [2**32 + 1]) for name in "se"]
    node = helper.make_node("Slice", ["x", "s", "e"], ["y"])
    graph = helper.make_graph([node], "g", [floats("x", 3, 4), *vectors], [floats("y", "a", "b")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with GuardedProcess(fate_of) as fate:
        assert fate(path) == EXPORTED


def test_dimensions_that_multiply_to_more_than_a_dimension_may_be() -> None:
    """Reshape is not read as one to a shape that ONNX could not write down."""
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"], name="reshape")]
    before = build_model(nodes, [floats("x", 2**62, 8)], [floats("y", None)], weights={"s": np.array([-1])})
    after = to_onnx(from_onnx(before))
    check_model(after)
    assert after.graph.node == before.graph.node


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_a_shape_of_numbers_that_are_no_integers(dtype: type) -> None:
    """The checker does not look at the types of operands; the node is carried as it is."""
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"], name="reshape")]
    before = build_model(nodes, [floats("x", 2, 3)], [floats("y", None)], weights={"s": np.array([np.nan], dtype)})
    assert to_onnx(from_onnx(before)).graph.node == before.graph.node


def _replaced(old: bytes, new: bytes) -> bytes:
    assert TINY.count(old) >= 1
    assert len(old) == len(new)
    return TINY.replace(old, new)


def test_names_that_are_no_text(tmp_path: Path) -> None:
    """Protobuf reads them, the checker lets them pass, and Python gets bytes."""
    path = tmp_path / "model.onnx"
    name = onnx.ModelProto.FromString(TINY).graph.node[0].output[0].encode()
    path.write_bytes(_replaced(name, b"\xff" * len(name)))
    with pytest.raises(ModelFormatError, match="is not UTF-8") as caught:
        from_onnx(path)
    assert_one_sentence(caught.value, path)


def test_a_weight_that_is_too_long(model: Build) -> None:
    """The checker counts only what is missing."""
    weights = {"w": np.ones(3, np.float32), "s": np.array([3])}
    nodes = [helper.make_node("Reshape", ["w", "s"], ["r"]), helper.make_node("Add", ["x", "r"], ["y"])]
    before = model(nodes, [floats("x", 3)], [floats("y", 3)], weights=weights)
    before.graph.initializer[1].raw_data *= 2
    with pytest.raises(ModelFormatError, match=r"the model is not a valid ONNX model: weight 's' of shape \[1\]"):
        from_onnx(before)


def test_a_weight_that_is_too_long_for_what_reads_it_only_as_it_runs(tmp_path: Path) -> None:
    model = onnx.ModelProto.FromString(TINY)
    model.graph.initializer[0].raw_data += b"\0\0\0\0"
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelFormatError, match="its data has a size of") as caught:
        from_onnx(path)
    assert_one_sentence(caught.value, path)


def test_an_element_type_that_does_not_exist() -> None:
    node = helper.make_node("Cast", ["x"], ["y"], to=99)
    graph = helper.make_graph([node], "g", [floats("x", 3)], [floats("y", 3)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
    with pytest.raises(ModelFormatError, match="there is no element type 99"):
        from_onnx(model)


@pytest.mark.parametrize(
    ("folder", "words"),
    [("missing", "there is no folder"), ("file/below", "there is no folder"), ("/proc/self", "cannot be written to")],
)
def test_places_where_nothing_can_be_written(tmp_path: Path, folder: str, words: str) -> None:
    (tmp_path / "file").write_text("x")
    path = tmp_path / folder / "out.onnx"
    with pytest.raises(InputError, match=words) as caught:
        save_model(onnx.ModelProto.FromString(TINY), path)
    assert "\n" not in str(caught.value)
    assert str(path.parent) in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_a_folder_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder: name a file"):
        save_model(onnx.ModelProto.FromString(TINY), tmp_path)


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    """As -o /dev/null would be, for whoever may write there."""
    os.mkfifo(path := tmp_path / "pipe")
    with pytest.raises(InputError, match="is not a regular file"):
        save_model(onnx.ModelProto.FromString(TINY), path)
    assert path.is_fifo()


@pytest.mark.parametrize("beside", [False, True])
def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beside: bool
) -> None:
    """The disk is full: the file of the same name from before is whole, and no draft is left."""

    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "out.onnx"
    path.write_bytes(b"precious")
    if beside:
        monkeypatch.setattr(saving, "_PROTOBUF_LIMIT_BYTES", 1)
    monkeypatch.setattr(saving.onnx, "save_model", full)
    with pytest.raises(RLFlowError, match="could not be written: No space left on device"):
        save_model(onnx.ModelProto.FromString(TINY), path)
    assert path.read_bytes() == b"precious"
    assert [p.name for p in tmp_path.iterdir()] == ["out.onnx"]


def test_save_replaces_a_file_and_writes_onnx_whatever_the_suffix(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text("old")
    save_model(onnx.ModelProto.FromString(TINY), path)
    assert onnx.ModelProto.FromString(path.read_bytes()) == onnx.ModelProto.FromString(TINY)


def test_a_constant_expression_that_has_no_value() -> None:
    """An index out of range among weights: the model could never run, and export says which node it is."""
    nodes = [helper.make_node("Gather", ["w", "i"], ["g"]), helper.make_node("Add", ["x", "g"], ["y"])]
    weights = {"w": np.ones((2, 3), np.float32), "i": np.array([5])}
    before = build_model(nodes, [floats("x", 1, 3)], [floats("y", 1, 3)], weights=weights)
    with pytest.raises(GraphError, match=r"Gather.*'g'.*cannot be evaluated"):
        to_onnx(from_onnx(before))


def test_check_model_names_the_reason() -> None:
    model = onnx.ModelProto.FromString(TINY)
    unknown_operator(model)
    with pytest.raises(GraphError, match=r"not valid ONNX: .*NoSuchOperator"):
        check_model(model)
