"""The texts about a model are read from its file without the rest of it."""

from pathlib import Path

import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import helper
from support.small_models import dense_model

from rlflow.onnx_io.metadata import metadata_of, with_metadata

TEXTS = st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.text(st.characters(codec="utf-8")))


@settings(max_examples=30)
@given(TEXTS, TEXTS)
def test_the_file_tells_what_the_model_does(before: dict[str, str], added: dict[str, str]) -> None:
    """All other kinds of fields are there, too, and the model that is given stays as it is."""
    model = dense_model(width=40)
    model.doc_string = "\n" * 200  # its length takes two bytes
    model.opset_import.append(helper.make_opsetid("other", 2**40))
    helper.set_model_props(model, before)
    changed = with_metadata(model, added)
    assert metadata_of(model) == before
    assert metadata_of(changed) == before | added
    assert changed.graph == model.graph


def test_a_file_says_the_same_of_itself(tmp_path: Path) -> None:
    path, texts = tmp_path / "model.onnx", {"made by": "a test", "é": "ü" * 300}
    onnx.save(with_metadata(dense_model(width=40), texts), path)
    assert metadata_of(path) == texts


def test_what_is_no_model_has_no_texts(tmp_path: Path) -> None:
    """Nor does one that was cut off before them, wherever that was."""
    whole = with_metadata(dense_model(), {"made by": "a test"}).SerializeToString()
    path = tmp_path / "cut.onnx"
    for end in range(0, len(whole), 7):
        path.write_bytes(whole[:end])
        assert metadata_of(path) in ({}, {"made by": "a test"}, {"made by": ""})
    path.write_text("made by: a test")
    assert metadata_of(path) == metadata_of(tmp_path / "absent.onnx") == {}
