"""Files that are no models are refused in one clear sentence that names the file."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper
from support.refusals import TINY, assert_one_sentence, loads_or_says_why, unknown_operator

from rlflow.errors import InputError, ModelFormatError
from rlflow.onnx_io import from_onnx, load_model
from rlflow.onnx_io.model_file import brief


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "there is no file"),
        (b"", "holds no graph or names no opset"),
        (b"This is a text file.\nWith two lines.\n", "is not an ONNX model"),
        (b"{}", "is not an ONNX model"),
        (np.random.default_rng(0).bytes(200), "is not a"),
    ],
)
@pytest.mark.parametrize("suffix", [".onnx", ".json", ".txt", ".onnxtxt", ".pbtxt"])
def test_files_that_are_no_models(tmp_path: Path, content: bytes | None, words: str, suffix: str) -> None:
    path = tmp_path / f"model{suffix}"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InputError, match=words) as caught:
        from_onnx(path)
    assert_one_sentence(caught.value, path)
    assert isinstance(caught.value, ModelFormatError) == (content is not None)


def test_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is a folder, not an ONNX file") as caught:
        load_model(tmp_path)
    assert_one_sentence(caught.value, tmp_path)


def test_a_path_below_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="there is no file"):
        load_model(tmp_path / "file" / "model.onnx")


def _no_opset(model: onnx.ModelProto) -> None:
    del model.opset_import[:]


def _no_graph(model: onnx.ModelProto) -> None:
    model.ClearField("graph")


def _reads_nothing(model: onnx.ModelProto) -> None:
    model.graph.node[0].input[0] = "nowhere"


def _computes_nothing(model: onnx.ModelProto) -> None:
    model.graph.output[0].name = "nowhere"


def _two_of_a_name(model: onnx.ModelProto) -> None:
    model.graph.node.add().CopyFrom(model.graph.node[0])


def _wrong_attribute(model: onnx.ModelProto) -> None:
    model.graph.node[0].attribute.append(helper.make_attribute("perm", "text"))


def _short_weight(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].raw_data = b"\0\0"


def _text_for_an_axis(model: onnx.ModelProto) -> None:
    node = helper.make_node("Softmax", [model.graph.node[0].input[0]], ["s"], axis="last")
    model.graph.node.insert(0, node)


@pytest.mark.parametrize(
    "damage",
    [
        _no_opset,
        _no_graph,
        unknown_operator,
        _reads_nothing,
        _computes_nothing,
        _two_of_a_name,
        _wrong_attribute,
        _short_weight,
        _text_for_an_axis,
    ],
)
@pytest.mark.parametrize("in_memory", [False, True])
def test_invalid_models(tmp_path: Path, damage, in_memory: bool) -> None:  # type: ignore[no-untyped-def]
    model = onnx.ModelProto.FromString(TINY)
    from_onnx(model)
    damage(model)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ModelFormatError) as caught:
        from_onnx(model if in_memory else path)
    assert "\n" not in str(caught.value)
    if not in_memory:
        assert_one_sentence(caught.value, path)


@settings(max_examples=200)
@given(cut=st.integers(0, len(TINY) - 1))
def test_truncated_files(scratch: Path, cut: int) -> None:
    path = scratch / "truncated.onnx"
    path.write_bytes(TINY[:cut])
    assert not loads_or_says_why(path)


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
