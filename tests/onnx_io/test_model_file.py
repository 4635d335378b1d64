"""Files that hold no valid model are refused in one sentence that names them."""

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from rlflow.errors import InputError, ModelFormatError
from rlflow.onnx_io.model_file import brief, load_model


def _saved(path: Path, operator: str = "Relu") -> Path:
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node(operator, ["x"], ["y"])], "g", values[:1], values[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def test_a_model_is_read(tmp_path: Path) -> None:
    assert load_model(_saved(tmp_path / "relu.onnx")).graph.node[0].op_type == "Relu"


def test_a_missing_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no file .*absent\.onnx"):
        load_model(tmp_path / "absent.onnx")
    with pytest.raises(InputError, match="is a folder"):
        load_model(tmp_path)


def test_a_truncated_file(tmp_path: Path) -> None:
    path = _saved(tmp_path / "cut.onnx")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(ModelFormatError, match=r"cut\.onnx is not an ONNX model, or is truncated"):
        load_model(path)


def test_an_operator_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(ModelFormatError, match=r"none\.onnx is not a valid ONNX model: .*Nonesuch"):
        load_model(_saved(tmp_path / "none.onnx", "Nonesuch"))


def test_a_reason_is_one_line_and_not_as_long_as_the_file() -> None:
    assert brief(ValueError("\n  too long\nsecond")) == "too long"
    assert len(brief(ValueError("x" * 10_000))) < 300
    assert brief(ValueError("")) == "ValueError"
