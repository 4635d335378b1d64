"""Writing a model to a file: whole or not at all, and over an older file only when all of it is there."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx

from rlflow.errors import InputError, RLFlowError
from rlflow.onnx_io.external_data import outside_bytes, settled, with_weights_in

_PROTOBUF_LIMIT_BYTES = 2**31 - 2**20
_REFUSALS = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT}


def save_model(model: onnx.ModelProto, path: str | Path) -> None:
    """Write a model whole or not at all; beyond protobuf's 2 GB the weights go to `<name>.data` beside it.

    `InputError` if the folder does not exist or may not be written, or a device would be replaced.
    """
    with _draft_of(Path(path)) as draft:
        if model.ByteSize() + outside_bytes(model) >= _PROTOBUF_LIMIT_BYTES:
            model = with_weights_in(model, draft.with_name(f"{draft.name}.data"))
        onnx.save_model(settled(model), str(draft), format="protobuf")


def copy_model(source: Path, path: str | Path) -> None:
    """Write a copy of a model's file, byte for byte, whole or not at all. `InputError` as `save_model`."""
    path = Path(path)
    if path.exists() and path.samefile(source):
        return
    with _draft_of(path) as draft:
        shutil.copyfile(source, draft)


def check_place(path: Path) -> None:
    """`InputError` where no model can be written, as far as can be seen without trying."""
    if path.is_dir():
        raise InputError(f"{path} is a folder: name a file to write the model to")
    if path.exists() and not path.is_file():
        raise InputError(f"{path} is not a regular file: name a file to write the model to")
    if not path.parent.is_dir():
        raise InputError(f"there is no folder {path.parent}: create it first")


def check_writable(path: Path) -> None:
    """`InputError` where no model can be written, found out before the work by writing an empty temporary file."""
    check_place(path)
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputError(
            f"{path.parent} cannot be written to ({error.strerror}): choose another place for {path.name}"
        ) from None


@contextmanager
def _draft_of(path: Path) -> Iterator[Path]:
    """A file of the same name in a temporary folder beside `path`; at the end what lies there takes its place."""
    check_place(path)
    try:
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
            yield Path(folder) / path.name
            for part in sorted(Path(folder).iterdir(), key=lambda p: p.name == path.name):
                os.replace(part, path.parent / part.name)  # the model itself last
    except OSError as error:
        if error.errno in _REFUSALS:
            raise InputError(f"{path.parent} cannot be written to: choose another place for {path.name}") from None
        raise RLFlowError(f"{path} could not be written: {error.strerror or error}") from None
