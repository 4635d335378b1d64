"""Data beside a model: where they may lie, how links lead to them, and that they fill the weight."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.onnx_models import build_model, floats
from support.refusals import assert_one_sentence

from rlflow.errors import ModelFormatError
from rlflow.onnx_io import load_model, read_model
from rlflow.onnx_io.data_place import homes_of, place_of

VALUES = np.arange(1.0, 7.0, dtype=np.float32)
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 24\n"


def _write(model: Path, location: str = "data", **entries: object) -> Path:
    """A model that adds a weight of 24 bytes, which lies where the entries say."""
    node = helper.make_node("Add", ["x", "w"], ["y"])
    made = build_model([node], [floats("x", 6)], [floats("y", 6)], weights={"w": VALUES})
    weight = made.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        weight.external_data.add(key=key, value=str(value))
    model.parent.mkdir(parents=True, exist_ok=True)
    model.write_bytes(made.SerializeToString())
    return model


def _link(path: Path, target: Path | str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(target)
    return path


def _values(path: Path) -> list[float]:
    weight = read_model(path).graph.initializer[0]
    return onnx.numpy_helper.to_array(weight).tolist()


def _cache(folder: Path) -> Path:
    """Hugging Face's: a snapshot of links into `blobs`."""
    _write(folder / "blobs/0a1b")
    (folder / "blobs/2c3d").write_bytes(VALUES.tobytes())
    _link(folder / "snapshots/1f2e/data", "../../blobs/2c3d")
    return _link(folder / "snapshots/1f2e/model.onnx", "../../blobs/0a1b")


def _absolute(folder: Path) -> Path:
    return _cache(folder)


def _relative(folder: Path) -> Path:
    os.chdir(_cache(folder).parents[1])
    return Path("1f2e/model.onnx")


def _bare_name(folder: Path) -> Path:
    os.chdir(_cache(folder).parent)
    return Path("model.onnx")


def _with_steps_back(folder: Path) -> Path:
    return _cache(folder).parent / "../1f2e/model.onnx"


def _through_a_linked_folder(folder: Path) -> Path:
    return _link(folder / "main", _cache(folder).parent) / "model.onnx"


def _through_two_links(folder: Path) -> Path:
    return _link(folder / "home/mine.onnx", _cache(folder))


def _in_a_subfolder(folder: Path) -> Path:
    _write(folder / "blobs/0a1b", "model.onnx_data")
    (folder / "blobs/2c3d").write_bytes(VALUES.tobytes())
    _link(folder / "snapshots/1f2e/onnx/model.onnx_data", "../../../blobs/2c3d")
    return _link(folder / "snapshots/1f2e/onnx/model.onnx", "../../../blobs/0a1b")


def _data_alone_are_a_link(folder: Path) -> Path:
    (folder / "real").write_bytes(VALUES.tobytes())
    _link(folder / "data", "real")
    return _write(folder / "model.onnx")


def _data_lie_beside_the_target(folder: Path) -> Path:
    _write(folder / "store/model.onnx")
    (folder / "store/data").write_bytes(VALUES.tobytes())
    return _link(folder / "home/model.onnx", "../store/model.onnx")


def _data_lie_beside_the_link(folder: Path) -> Path:
    _write(folder / "store/model.onnx")
    link = _link(folder / "home/model.onnx", folder / "store/model.onnx")
    (folder / "home/data").write_bytes(VALUES.tobytes())
    return link


def _in_a_linked_folder_of_its_own(folder: Path) -> Path:
    (folder / "kept").mkdir()
    (folder / "kept/data").write_bytes(VALUES.tobytes())
    _link(folder / "weights", "kept")
    return _write(folder / "model.onnx", "weights/data")


def _by_a_hard_link(folder: Path) -> Path:
    (folder / "real").write_bytes(VALUES.tobytes())
    os.link(folder / "real", folder / "data")
    return _write(folder / "model.onnx")


def _back_and_forth(folder: Path) -> Path:
    (folder / "data").write_bytes(VALUES.tobytes())
    (folder / "sub").mkdir()
    return _write(folder / "model.onnx", "sub/../data")


@pytest.mark.parametrize(
    "layout",
    [
        _absolute,
        _relative,
        _bare_name,
        _with_steps_back,
        _through_a_linked_folder,
        _through_two_links,
        _in_a_subfolder,
        _data_alone_are_a_link,
        _data_lie_beside_the_target,
        _data_lie_beside_the_link,
        _in_a_linked_folder_of_its_own,
        _by_a_hard_link,
        _back_and_forth,
    ],
)
def test_data_are_found_through_links(
    tmp_path: Path, layout: Callable[[Path], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the model that was read names the file itself, so that it may be used from any folder."""
    monkeypatch.chdir(tmp_path)
    path = layout(tmp_path)
    assert _values(path) == VALUES.tolist()
    place = place_of(load_model(path).graph.initializer[0])
    assert place.path == place.path.resolve()
    assert (place.offset, place.length) == (0, 24)
    os.chdir("/")
    assert place.path.read_bytes() == VALUES.tobytes()


def _out_by_dots(folder: Path) -> Path:
    return _write(folder / "model/model.onnx", "../secret")


def _out_by_a_link(folder: Path) -> Path:
    _link(folder / "model/data", "../secret")
    return _write(folder / "model/model.onnx")


def _out_by_two_links(folder: Path) -> Path:
    _link(folder / "model/data", "step")
    _link(folder / "model/step", folder / "secret")
    return _write(folder / "model/model.onnx")


def _out_by_a_linked_folder(folder: Path) -> Path:
    _link(folder / "model/weights", "..")
    return _write(folder / "model/model.onnx", "weights/secret")


def _out_of_the_cache(folder: Path) -> Path:
    _write(folder / "cache/blobs/0a1b")
    _link(folder / "cache/snapshots/1f2e/data", "../../../secret")
    return _link(folder / "cache/snapshots/1f2e/model.onnx", "../../blobs/0a1b")


def _into_blobs_of_which_the_user_named_none(folder: Path) -> Path:
    """A model that is no link itself gives no right to another folder: a repository may bring links of its own."""
    (folder / "blobs").mkdir()
    (folder / "blobs/2c3d").write_bytes(VALUES.tobytes())
    _link(folder / "snapshots/1f2e/data", "../../blobs/2c3d")
    return _write(folder / "snapshots/1f2e/model.onnx")


@pytest.mark.parametrize(
    "layout",
    [
        _out_by_dots,
        _out_by_a_link,
        _out_by_two_links,
        _out_by_a_linked_folder,
        _out_of_the_cache,
        _into_blobs_of_which_the_user_named_none,
    ],
)
def test_no_file_outside_the_folders_that_the_user_named(tmp_path: Path, layout: Callable[[Path], Path]) -> None:
    """Each of them holds the 24 bytes that would fill the weight, so that nothing else is in the way."""
    (tmp_path / "secret").write_bytes(VALUES.tobytes())
    path = layout(tmp_path)
    with pytest.raises(ModelFormatError, match="outside the model's folder: copy that file there if you trust") as e:
        load_model(path)
    assert_one_sentence(e.value, path)


def test_an_absolute_path_is_refused_even_to_the_right_file(tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(VALUES.tobytes())
    path = _write(tmp_path / "model.onnx", str(tmp_path / "data"))
    with pytest.raises(ModelFormatError, match="is an absolute path: put the file beside the model"):
        load_model(path)


def test_a_blob_that_was_not_downloaded_is_named(tmp_path: Path) -> None:
    path = _cache(tmp_path)
    (tmp_path / "blobs/2c3d").unlink()
    with pytest.raises(ModelFormatError, match=r"there is no file '.*/blobs/2c3d', where its data should be: download"):
        load_model(path)


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    _link(tmp_path / "data", "other")
    _link(tmp_path / "other", "data")
    with pytest.raises(ModelFormatError, match="is not a valid ONNX model"):
        load_model(_write(tmp_path / "model.onnx"))


def test_homes_are_the_folders_of_a_path_and_of_its_links(tmp_path: Path) -> None:
    path = _through_two_links(tmp_path)
    homes = [home.resolve().relative_to(tmp_path.resolve()).as_posix() for home in homes_of(path)]
    assert homes == ["home", "snapshots/1f2e", "blobs"]


@pytest.mark.parametrize(
    ("content", "entries", "words"),
    [
        (VALUES.tobytes()[:-1], {}, "end at byte 24 of 'data', which has 23: get the whole file"),
        (b"", {}, "end at byte 24 of 'data', which has 0: get the whole file"),
        (VALUES.tobytes(), {"offset": 4096}, "end at byte 4120 of 'data', which has 24"),
        (VALUES.tobytes(), {"offset": 2**63}, f"end at byte {2**63 + 24} of 'data'"),
        (VALUES.tobytes(), {"offset": 10**30}, f"end at byte {10**30 + 24} of 'data'"),
        (VALUES.tobytes(), {"offset": -4}, "the offset of its data is '-4', but must be a whole number of at least 0"),
        (VALUES.tobytes(), {"length": -24}, "the length of its data is '-24', but must be a whole number"),
        (VALUES.tobytes(), {"offset": "1e1"}, "the offset of its data is '1e1', but must be a whole number"),
        (VALUES.tobytes(), {"offset": ""}, "the offset of its data is '', but must be a whole number"),
        (VALUES.tobytes(), {"offset": " 0"}, "the offset of its data is ' 0', but must be a whole number"),
        (VALUES.tobytes() * 2, {"length": 48}, "its data has a size of 48 instead of 24"),
        (VALUES.tobytes(), {"length": 10**30}, f"its data has a size of {10**30} instead of 24"),
        (POINTER, {}, "'data' is a Git LFS pointer, not the data themselves: run `git lfs pull`"),
        (POINTER, {"offset": 4096}, "'data' is a Git LFS pointer"),
        (POINTER, {"offset": 1, "length": 24}, "'data' is a Git LFS pointer"),
    ],
)
def test_data_that_do_not_fill_their_weight(
    tmp_path: Path, content: bytes, entries: dict[str, object], words: str
) -> None:
    """The last pointer is longer than the weight, which would be read from its text."""
    (tmp_path / "data").write_bytes(content)
    path = _write(tmp_path / "model.onnx", **entries)
    with pytest.raises(ModelFormatError) as caught:
        load_model(path)
    assert words in str(caught.value)
    assert "weight 'w' of shape [6]" in str(caught.value)
    assert_one_sentence(caught.value, path)


@pytest.mark.parametrize("entries", [{}, {"offset": 0}, {"length": 24}, {"length": 0}, {"checksum": "no"}])
def test_a_length_may_be_left_to_the_shape(tmp_path: Path, entries: dict[str, object]) -> None:
    """As ONNX Runtime reads it, also where the file goes on with other weights."""
    (tmp_path / "data").write_bytes(VALUES.tobytes() + b"of others")
    assert _values(_write(tmp_path / "model.onnx", **entries)) == VALUES.tolist()


@pytest.mark.parametrize("field", ["location", "w"])
def test_a_text_that_is_none(tmp_path: Path, field: str) -> None:
    """In the entry that names the file, or in the name of the weight of which that is to be told."""
    path = _write(tmp_path / "model.onnx", "location")
    content = path.read_bytes()
    key = b"\x12\x08location" if field == "location" else b"B\x01w"
    assert content.count(key) == 1
    path.write_bytes(content.replace(key, key[:-1] + b"\xdf"))
    with pytest.raises(ModelFormatError, match="is not a valid ONNX model: ") as caught:
        load_model(path)
    assert_one_sentence(caught.value, path)


@pytest.mark.parametrize(
    ("location", "words"),
    [
        ("absent", "there is no file 'absent', where its data should be: download it, or put it there"),
        ("", "is a folder, but should be the file with its data"),
        ("sub", "is a folder, but should be the file with its data"),
        ("pipe", "is no regular file, but should be the file with its data"),
        ("two\nlines", r"there is no file 'two\nlines'"),
    ],
)
def test_locations_that_are_no_files(tmp_path: Path, location: str, words: str) -> None:
    (tmp_path / "sub").mkdir()
    os.mkfifo(tmp_path / "pipe")  # opening it would wait for ever
    path = _write(tmp_path / "model.onnx", location)
    with pytest.raises(ModelFormatError) as caught:
        load_model(path)
    assert words in str(caught.value)
    assert_one_sentence(caught.value, path)
