"""Reading an ONNX file, and refusing in one sentence what is no valid model."""

from __future__ import annotations

from pathlib import Path

import onnx
from google.protobuf.message import DecodeError

from rlflow.errors import InputError, ModelFormatError

_LONGEST_REASON = 240  # characters: with the file's name it is still one sentence


def load_model(path: str | Path) -> onnx.ModelProto:
    """Read a model, leaving external data where it is. `InputError` or `ModelFormatError` in one sentence."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{path} is a folder, not an ONNX file")
    try:
        model = onnx.load(str(path), format="protobuf", load_external_data=False)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError(f"there is no file {path}") from None
    except PermissionError:
        raise InputError(f"{path} may not be read: check its permissions") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None
    except (DecodeError, UnicodeDecodeError, ValueError) as error:
        raise ModelFormatError(f"{path} is not an ONNX model, or is truncated ({brief(error)})") from None
    check(model, str(path), where=str(path))
    return model


def check(model: onnx.ModelProto, checked: str | onnx.ModelProto, where: str) -> None:
    """Raise `ModelFormatError` if ONNX's checker refuses `checked`: the model's file, or the model without weights."""
    if not model.opset_import or not model.HasField("graph"):
        raise ModelFormatError(f"{where} is not an ONNX model: it holds no graph or names no opset")
    try:
        onnx.checker.check_model(checked)
    except (onnx.checker.ValidationError, RuntimeError, ValueError) as error:
        raise ModelFormatError(f"{where} is not a valid ONNX model: {brief(error)}") from None


def brief(error: Exception) -> str:
    """Return the first line that says something; a name in it may be as long as the file."""
    line = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__).strip()
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]} ..."
