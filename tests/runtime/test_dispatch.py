"""A table of models: each input goes to the model for its shapes, and to no other."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from support.small_models import build_model

import rlflow
from rlflow.errors import InputError, ModelFormatError
from rlflow.runtime.session_options import SessionOptions

LEVEL = SessionOptions(graph_optimization_level="ORT_DISABLE_ALL", intra_op_num_threads=1)


def adding(number: float, rows: int) -> onnx.ModelProto:
    """x + scale + a number of its own, by which one knows which model ran."""
    model = build_model(
        [helper.make_node("Add", ["x", "scale"], ["a"]), helper.make_node("Add", ["a", "own"], ["y"])],
        [("x", TensorProto.FLOAT, [rows, 2]), ("scale", TensorProto.FLOAT, [1])],
        [("y", TensorProto.FLOAT, [rows, 2])],
        {"own": np.array([number], np.float32)},
    )
    return LEVEL.put_into(model)


def row(file: str, *shape: int) -> dict[str, Any]:
    return {"shapes": {"x": list(shape)}, "file": file, "written": "optimised", "reason": "faster", "latency": None}


@pytest.fixture
def table(tmp_path: Path) -> Path:
    for rows in (1, 3):
        onnx.save(adding(10.0 * rows, rows), tmp_path / f"{rows}.onnx")
    path = tmp_path / "table.json"
    path.write_text(json.dumps({"rlflow_version": "1", "models": [row("1.onnx", 1, 2), row("3.onnx", 3, 2)]}))
    return path


def feeds(*shape: int) -> dict[str, np.ndarray]:
    return {"x": np.zeros(shape, np.float32), "scale": np.ones(1, np.float32)}


def test_the_shapes_choose_the_model(table: Path) -> None:
    """Each is opened once, when it is first run, with the options that it carries."""
    session = rlflow.dispatch_session(table)
    assert not session.open
    for rows in (3, 1, 3):
        (y,) = session.run(["y"], feeds(rows, 2))
        np.testing.assert_array_equal(y, np.full((rows, 2), 1.0 + 10.0 * rows, np.float32))
    assert [path.name for path in session.open] == ["3.onnx", "1.onnx"]
    assert session.session(feeds(3, 2)).get_session_options().intra_op_num_threads == LEVEL.intra_op_num_threads
    assert len(session.run(None, {"x": [[0.0, 0.0]], "scale": [1.0]})) == 1, "lists have shapes, too"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (feeds(2, 2), "no model is for inputs of x=2x2: there is one for x=1x2; x=3x2"),
        ({"scale": np.ones(1, np.float32)}, "no model is for inputs of no known name"),
    ],
)
def test_other_shapes_are_refused_with_those_that_there_are(table: Path, given: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        rlflow.dispatch_session(table).run(None, given)


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        '{"rlflow_version": "1", "models": []}',
        json.dumps({"rlflow_version": "1", "models": [row("../1.onnx", 1, 2)]}),
        json.dumps({"rlflow_version": "1", "models": [row("1.onnx", 1, 2) | {"shapes": {}}]}),
    ],
    ids=["no JSON", "of nothing", "of a file elsewhere", "of no shapes"],
)
def test_what_is_no_table_is_refused(table: Path, text: str) -> None:
    table.write_text(text)
    with pytest.raises(ModelFormatError, match="is no dispatch table of RLFlow"):
        rlflow.dispatch_session(table)


def test_a_table_without_its_models_is_refused(table: Path) -> None:
    (table.parent / "3.onnx").unlink()
    with pytest.raises(InputError, match=r"3\.onnx of the dispatch table .* is not there"):
        rlflow.dispatch_session(table)
    with pytest.raises(InputError, match="no dispatch table at"):
        rlflow.dispatch_session(table.parent / "other.json")
