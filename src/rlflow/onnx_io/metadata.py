"""The texts about a model, its `metadata_props`, read without the rest of its file, which may have gigabytes.

metadata_of(Path("model.onnx"))["made_by"]
with_metadata(model, {"made_by": "rlflow"})         another model, with one text more
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import BinaryIO

from google.protobuf.message import DecodeError
from onnx import ModelProto, StringStringEntryProto, helper

from rlflow.onnx_io.network import texts_of

_VARINT, _WITH_LENGTH, _WIDTHS = 0, 2, {1: 8, 5: 4}
"""How a field of a message is written, and the bytes of those that say no length of their own:
https://protobuf.dev/programming-guides/encoding
"""


def metadata_of(model: ModelProto | Path) -> dict[str, str]:
    """Return the texts about a model by their keys; none of a file that is no model, or that is not there."""
    if not isinstance(model, Path):
        return texts_of(model)
    try:
        with model.open("rb") as file:
            return {entry.key: entry.value for entry in _entries(file)}
    except (OSError, DecodeError):
        return {}


def with_metadata(model: ModelProto, texts: Mapping[str, str]) -> ModelProto:
    """Return the model with these texts about it besides those that it has."""
    changed = ModelProto()
    changed.CopyFrom(model)
    helper.set_model_props(changed, texts_of(model) | dict(texts))
    return changed


def _entries(file: BinaryIO) -> Iterator[StringStringEntryProto]:
    """Yield the entries of a model's file, and skip all other fields; what is no message ends it."""
    while tag := _varint(file):
        number, kind = tag >> 3, tag & 7
        if kind == _VARINT:
            _varint(file)
        elif kind in _WIDTHS or kind == _WITH_LENGTH:
            length = _WIDTHS.get(kind) or _varint(file)
            if number == ModelProto.METADATA_PROPS_FIELD_NUMBER:
                yield StringStringEntryProto.FromString(file.read(length))
            else:
                file.seek(length, os.SEEK_CUR)
        else:
            return


def _varint(file: BinaryIO) -> int:
    """Read a number of seven bits a byte; 0 at the end of the file."""
    value = 0
    for place in range(10):
        byte = (file.read(1) or b"\0")[0]
        value |= (byte & 0x7F) << (7 * place)
        if byte < 0x80:
            break
    return value
