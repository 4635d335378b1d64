"""Public tools by their commands: a model that computes the same, or the reason why there is none."""

from pathlib import Path

import pytest
from studies.speedups.public_tools import names, run_tool

from rlflow import zoo
from rlflow.errors import InputError
from rlflow.onnx_io import load_model, save_model


@pytest.fixture
def original(tmp_path: Path) -> Path:
    save_model(zoo.build("tiny_transpose"), tmp_path / "original.onnx")
    return tmp_path / "original.onnx"


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_each_tool_yields_a_model_that_is_compared(name: str, original: Path, tmp_path: Path) -> None:
    """On a model whose draws can tell: at least one of them is informative."""
    made = run_tool(name, original, tmp_path / "output.onnx")
    assert made.failure == ""
    assert made.version
    assert made.equivalence is not None
    assert made.equivalence.non_vacuous_draws > 0
    assert load_model(tmp_path / "output.onnx").graph.node


def test_a_tool_that_fails_says_why(tmp_path: Path) -> None:
    (tmp_path / "original.onnx").write_text("no model")
    made = run_tool("onnxoptimizer", tmp_path / "original.onnx", tmp_path / "output.onnx")
    assert made.failure.startswith("it ended with exit code 1: ")
    assert made.equivalence is None


def test_an_unknown_tool_is_refused_with_the_known_ones(original: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no public tool 'onnxslm' here: choose one of onnxoptimizer, .*, onnxslim"):
        run_tool("onnxslm", original, tmp_path / "output.onnx")
