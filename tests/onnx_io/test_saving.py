"""Models are written whole or not at all; a copy is the same bytes."""

from pathlib import Path

import onnx
import pytest

from rlflow import zoo
from rlflow.errors import InputError
from rlflow.onnx_io import copy_model, load_model, save_model, saving
from rlflow.onnx_io.saving import check_writable


@pytest.fixture
def source(tmp_path: Path) -> Path:
    save_model(zoo.build("tiny_chain"), tmp_path / "in.onnx")
    return tmp_path / "in.onnx"


def test_a_copy_is_the_same_bytes_and_replaces_what_was_there(source: Path) -> None:
    target = source.with_name("out.onnx")
    target.write_text("an older file")
    copy_model(source, target)
    assert target.read_bytes() == source.read_bytes()
    assert {path.name for path in source.parent.iterdir()} == {"in.onnx", "out.onnx"}


def test_a_copy_onto_itself_leaves_the_file_alone(source: Path) -> None:
    before = source.stat()
    copy_model(source, source.parent / "." / source.name)
    assert source.stat() == before


def test_weights_in_other_files_are_written_with_the_model(tmp_path: Path) -> None:
    """A model that was read names them by absolute path, which no file may; the one in memory is left as it is."""
    here, there = tmp_path / "here.onnx", tmp_path / "there"
    onnx.save_model(zoo.build("mlp"), here, save_as_external_data=True, location="here.data", size_threshold=0)
    there.mkdir()
    loaded = load_model(here)
    save_model(loaded, there / "model.onnx")
    assert [path.name for path in there.iterdir()] == ["model.onnx"]
    held = [tensor.raw_data for tensor in onnx.load(there / "model.onnx").graph.initializer]
    assert held == [tensor.raw_data for tensor in zoo.build("mlp").graph.initializer]
    assert all(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in loaded.graph.initializer)


def test_beyond_the_limit_of_protobuf_weights_go_beside_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = zoo.build("mlp")
    monkeypatch.setattr(saving, "_PROTOBUF_LIMIT_BYTES", model.ByteSize())
    save_model(model, tmp_path / "large.onnx")
    assert {path.name for path in tmp_path.iterdir()} == {"large.onnx", "large.onnx.data"}
    assert (tmp_path / "large.onnx").stat().st_size < model.ByteSize() / 2
    onnx.checker.check_model(str(tmp_path / "large.onnx"))


@pytest.mark.parametrize("place", ["missing/out.onnx", "in.onnx/out.onnx", ".", "/proc/out.onnx"])
def test_a_place_that_cannot_be_written_to_is_refused_and_nothing_is_left(source: Path, place: str) -> None:
    target = source.parent / place
    before = source.read_bytes()
    for write in (
        check_writable,
        lambda path: copy_model(source, path),
        lambda path: save_model(onnx.ModelProto(), path),
    ):
        with pytest.raises(InputError):
            write(target)
    assert [path.name for path in source.parent.iterdir()] == ["in.onnx"]
    assert source.read_bytes() == before


def test_a_write_that_fails_half_way_leaves_the_older_file(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = source.with_name("out.onnx")
    target.write_text("an older file")

    def interrupted(model: onnx.ModelProto, path: str, format: str) -> None:
        Path(path).write_bytes(b"half")
        raise KeyboardInterrupt

    monkeypatch.setattr(onnx, "save_model", interrupted)
    with pytest.raises(KeyboardInterrupt):
        save_model(zoo.build("tiny_chain"), target)
    assert target.read_text() == "an older file"
    assert {path.name for path in source.parent.iterdir()} == {"in.onnx", "out.onnx"}
