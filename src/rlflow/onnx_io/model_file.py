"""Reading an ONNX file, and refusing in one sentence what is no valid model."""

from __future__ import annotations

from pathlib import Path

import onnx
from google.protobuf.message import DecodeError, EncodeError

from rlflow.errors import InputError, ModelFormatError
from rlflow.git_lfs import require_content
from rlflow.onnx_io.data_place import homes_of
from rlflow.onnx_io.external_data import bring, settle, tensors_of
from rlflow.onnx_io.payload import InitializerPayload
from rlflow.onnx_io.shapes.inference import without_large_weights

_LONGEST_REASON = 240  # characters: with the file's name it is still one sentence
_REFUSALS = (onnx.checker.ValidationError, EncodeError, RuntimeError, ValueError, TypeError, LookupError)


def read_model(path: str | Path) -> onnx.ModelProto:
    """Read a model with its weights, where these fit into one message together. Errors as `load_model`."""
    model = load_model(path)
    settle(model)
    return model


def load_model(path: str | Path) -> onnx.ModelProto:
    """Read a valid model; weights in files stay there, and the model names these by their absolute paths.

    `InputError` or `ModelFormatError` in one sentence.
    """
    path = Path(path)
    model = _parsed(path)
    try:
        bring(model, homes_of(path))
    except (ModelFormatError, UnicodeDecodeError) as error:
        raise ModelFormatError(f"{path} is not a valid ONNX model: {brief(error)}") from None
    require_valid(model, where=str(path))
    return model


def require_valid(model: onnx.ModelProto, where: str = "the model") -> None:
    """`ModelFormatError` in one sentence if a model is not valid ONNX, or data do not fill their tensors."""
    if not model.opset_import or not model.HasField("graph"):
        raise ModelFormatError(f"{where} is not an ONNX model: it holds no graph or names no opset")
    try:
        for tensor in tensors_of(model):
            InitializerPayload(tensor).check()
        onnx.checker.check_model(without_large_weights(model))
    except (ModelFormatError, *_REFUSALS) as error:
        raise ModelFormatError(f"{where} is not a valid ONNX model: {brief(error)}") from None


def brief(error: Exception) -> str:
    """Return the first line that says something; a name in it may be as long as the file."""
    if isinstance(error, UnicodeDecodeError):
        return "a text in it is not UTF-8"
    line = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__).strip()
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]} ..."


def _require_file(path: Path) -> None:
    """`InputError` for a path under which no file lies that could be a model."""
    if path.is_dir():
        raise InputError(f"{path} is a folder, not an ONNX file")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is no regular file: name an ONNX file")
    require_content(path)


def _parsed(path: Path) -> onnx.ModelProto:
    """Read the message in a file. `InputError` if there is none to read, `ModelFormatError` if it is no model."""
    try:
        _require_file(path)
        return onnx.load(str(path), format="protobuf", load_external_data=False)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"there is no file {path}") from None
    except PermissionError:
        raise InputError(f"{path} may not be read: check its permissions") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (DecodeError, UnicodeDecodeError, ValueError) as error:
        raise ModelFormatError(f"{path} is not an ONNX model, or is truncated ({brief(error)})") from None
