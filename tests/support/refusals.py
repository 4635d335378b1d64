"""Files that cannot be read, and the one sentence in which they are refused."""

from pathlib import Path

import onnx

from rlflow import zoo
from rlflow.errors import ModelFormatError, RLFlowError
from rlflow.ir import validate
from rlflow.onnx_io import from_onnx

TINY = zoo.build("tiny_chain").SerializeToString()


def assert_one_sentence(error: RLFlowError, path: Path) -> None:
    """The message is short, names the file, and goes with the exit code of bad input."""
    message = str(error)
    assert error.exit_code == 2
    assert str(path) in message
    assert "\n" not in message
    assert len(message) < 400


def unknown_operator(model: onnx.ModelProto) -> None:
    model.graph.node[0].op_type = "NoSuchOperator"


def loads_or_says_why(path: Path) -> bool:
    """Whether the file becomes a valid graph; if not, the error names it in one sentence."""
    reason = None
    try:
        validate(from_onnx(path))
    except ModelFormatError as error:
        reason = str(error)
    assert reason is None or ("\n" not in reason and str(path) in reason)
    return reason is None
