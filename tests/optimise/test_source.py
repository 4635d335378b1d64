"""A model is read once; what is saved again is the file itself where one file holds all of it."""

from pathlib import Path

import onnx
import pytest
from onnx import numpy_helper

from rlflow import zoo
from rlflow.errors import InputError, ModelFormatError
from rlflow.optimise.source import Source


def _written(path: Path, *, outside: bool = False) -> Path:
    onnx.save_model(zoo.build("tiny_chain"), path, save_as_external_data=outside, size_threshold=0)
    return path


def test_a_model_in_memory_is_taken_as_it_is(tmp_path: Path) -> None:
    model = zoo.build("tiny_chain")
    source = Source.of(model)
    assert source.model is model
    assert (source.name, source.argument) == ("a model in memory", "MODEL")
    source.save(tmp_path / "copy.onnx")
    assert onnx.load(tmp_path / "copy.onnx") == model


def test_a_single_file_is_saved_byte_for_byte(tmp_path: Path) -> None:
    """Also where its bytes are not those that a new file would have: unknown fields are kept."""
    path = _written(tmp_path / "model.onnx")
    path.write_bytes(path.read_bytes() + b"\xf8\x3f\x01")
    source = Source.of(path)
    assert not source.beside
    assert Source.of(source) is source, "it is read once"
    source.save(tmp_path / "copy.onnx")
    assert (tmp_path / "copy.onnx").read_bytes() == path.read_bytes()
    assert (source.name, source.argument) == (str(path), str(path.resolve()))


def test_weights_beside_a_file_come_along(tmp_path: Path) -> None:
    path = _written(tmp_path / "model.onnx", outside=True)
    source = Source.of(str(path))
    assert source.beside == {path.with_name("model.onnx.data")} or len(source.beside) == 1
    (tmp_path / "elsewhere").mkdir()
    source.save(tmp_path / "elsewhere/copy.onnx")
    copied, built = onnx.load(tmp_path / "elsewhere/copy.onnx"), zoo.build("tiny_chain")
    values = [[numpy_helper.to_array(t).tobytes() for t in m.graph.initializer] for m in (copied, built)]
    assert values[0] == values[1]


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("no model")
    with pytest.raises((InputError, ModelFormatError), match=r"text\.onnx"):
        Source.of(tmp_path / "text.onnx")
    broken = zoo.build("tiny_chain")
    broken.graph.node[0].op_type = "NoSuchOperator"
    with pytest.raises(ModelFormatError):
        Source.of(broken)
