"""The place of a weight's data in a file beside the model, found where the model's path allows it and nowhere else.

    external_data: [location=model.onnx_data, offset=4096, length=1048576]

The path and the links that it leads through are what the user named: `homes_of` returns their folders, and `place_of`
the file itself, whatever links lead to it from there. A file outside these folders is refused, and so are data that do
not fill the weight.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import NamedTuple

from onnx import TensorProto, helper

from rlflow.errors import ModelFormatError
from rlflow.git_lfs import is_pointer

_PACKED_BITS = {"INT2": 2, "UINT2": 2, "INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "FLOAT6E2M3": 6, "FLOAT6E3M2": 6}
UNREADABLE = (OSError, ValueError, TypeError, KeyError, RuntimeError)
"""What is raised where data that a model names cannot be used."""


class Place(NamedTuple):
    """A range of bytes in a file."""

    path: Path
    offset: int
    length: int


def is_outside(tensor: TensorProto) -> bool:
    return tensor.data_location == TensorProto.EXTERNAL


def homes_of(path: Path) -> list[Path]:
    """Return the folders in which a model of this path may have its data: its own, and that of each link on the way.

    Hugging Face's cache has `snapshots/1f2e/model.onnx` lead to `blobs/0a1b`, and the data beside it to `blobs/2c3d`.
    """
    homes = [path.parent]
    while path.is_symlink():
        path = path.parent / os.readlink(path)
        homes.append(path.parent)
    return homes


def place_of(tensor: TensorProto, homes: Sequence[Path] = ()) -> Place:
    """Locate the data of a tensor, whose file must lie in one of the folders `homes`.

    Without `homes` the model is in memory: it names files by absolute path, or in the current folder. Raises
    `ModelFormatError` if there is no such file, it lies elsewhere, or the data do not fill the tensor.
    """
    try:
        return _place(tensor, {entry.key: entry.value for entry in tensor.external_data}, homes)
    except UNREADABLE as error:
        raise unusable(tensor, getattr(error, "strerror", None) or error) from None


def _place(tensor: TensorProto, entries: Mapping[str, str], homes: Sequence[Path]) -> Place:
    location, needed = entries.get("location"), stored_bytes(tensor)
    if not isinstance(location, str):  # protobuf hands out a text that is not UTF-8 as bytes
        raise ValueError("it names no file for its data")
    path = _file_of(location, homes)
    if is_pointer(path):
        raise ValueError(f"{location!r} is a Git LFS pointer, not the data themselves: run `git lfs pull`")

    offset, length = _number(entries, "offset"), _number(entries, "length") or needed
    if length != needed:
        raise ValueError(f"its data has a size of {length} instead of {needed}")
    present = path.stat().st_size
    if offset + length > present:
        raise ValueError(
            f"its data would end at byte {offset + length} of {location!r}, which has {present}: get the whole file"
        )
    return Place(path, offset, length)


def _file_of(location: str, homes: Sequence[Path]) -> Path:
    """Return the file itself that a location means, whatever links lead there; `ValueError` if it may not be read."""
    if Path(location).is_absolute():
        if homes:
            raise ValueError(f"{location!r} is an absolute path: put the file beside the model and name it from there")
        return _regular(Path(location))
    homes = homes or [Path()]
    named = [home / location for home in homes]
    found = next(filter(Path.exists, named), None)
    if found is None:
        link = next(filter(Path.is_symlink, named), None)
        missing = str(location if link is None else link.resolve())
        raise ValueError(f"there is no file {missing!r}, where its data should be: download it, or put it there")
    file = found.resolve()
    if not any(file.is_relative_to(home.resolve()) for home in homes):
        raise ValueError(
            f"{location!r} leads to {str(file)!r}, outside the model's folder: copy that file there if you trust it"
        )
    return _regular(file)


def _regular(file: Path) -> Path:
    if not file.is_file():
        kind = "a folder" if file.is_dir() else "no regular file"
        raise ValueError(f"{str(file)!r} is {kind}, but should be the file with its data")
    return file


def _number(entries: Mapping[str, str], key: str) -> int:
    text = entries.get(key, "0")
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"the {key} of its data is {text!r}, but must be a whole number of at least 0")
    return int(text)


def is_packed(tensor: TensorProto) -> bool:
    """Return True if elements of this tensor's type share bytes."""
    return TensorProto.DataType.Name(tensor.data_type) in _PACKED_BITS


def stored_bytes(tensor: TensorProto) -> int:
    """Return the bytes that the values take in a file; strings have none there."""
    packed = _PACKED_BITS.get(TensorProto.DataType.Name(tensor.data_type))
    bits = packed or 8 * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    return -(-prod(tensor.dims) * bits // 8)


def unusable(tensor: TensorProto, reason: object) -> ModelFormatError:
    """Make the error that names a weight and the reason why its data cannot be used."""
    return ModelFormatError(f"weight {tensor.name!r} of shape {list(tensor.dims)}: {reason}")
