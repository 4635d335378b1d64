"""What the graph refers to and never copies: weights, and nodes that are carried verbatim."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import Message
from onnx import external_data_helper, numpy_helper

from rlflow.errors import ModelFormatError


@dataclass(frozen=True, eq=False)
class InitializerPayload:
    """A weight, held as the model's own TensorProto (whose data may lie in a file beside the model)."""

    proto: onnx.TensorProto
    folder: Path | None = None

    @cached_property
    def digest(self) -> str:
        """The same for equal values, wherever and in whichever of ONNX's fields they are stored."""
        hasher = blake2b(f"{self.proto.data_type}{list(self.proto.dims)}".encode(), digest_size=16)
        loaded = self.self_contained()
        if loaded.data_type == onnx.TensorProto.STRING:
            hasher.update(repr(list(loaded.string_data)).encode())
        elif loaded.HasField("raw_data"):
            hasher.update(loaded.raw_data)
        else:
            hasher.update(numpy_helper.from_array(self.array()).raw_data)
        return hasher.hexdigest()

    def array(self) -> np.ndarray:
        """The values; `ModelFormatError` where they do not fill the shape."""
        try:
            return numpy_helper.to_array(self.proto, base_dir=str(self.folder) if self.folder else "")
        except ValueError as error:
            raise ModelFormatError(f"weight {self.proto.name!r} of shape {list(self.proto.dims)}: {error}") from None

    def self_contained(self) -> onnx.TensorProto:
        """The tensor with its data inside, read from the model's folder where it lies outside."""
        if self.proto.data_location != onnx.TensorProto.EXTERNAL:
            return self.proto
        loaded = onnx.TensorProto()
        loaded.CopyFrom(self.proto)
        external_data_helper.load_external_data_for_tensor(loaded, str(self.folder or Path()))
        loaded.ClearField("external_data")
        loaded.data_location = onnx.TensorProto.DEFAULT
        return loaded


@dataclass(frozen=True, eq=False)
class SparsePayload:
    """A sparse weight, carried verbatim; coordinates are linear or one row an element."""

    proto: onnx.SparseTensorProto

    @cached_property
    def digest(self) -> str:
        anonymous = onnx.SparseTensorProto()
        anonymous.CopyFrom(self.proto)
        anonymous.values.ClearField("name")
        return blake2b(anonymous.SerializeToString(deterministic=True), digest_size=16).hexdigest()

    def array(self) -> np.ndarray:
        values = numpy_helper.to_array(self.proto.values)
        indices = numpy_helper.to_array(self.proto.indices)
        dense = np.zeros(tuple(self.proto.dims), dtype=values.dtype)
        if indices.ndim == 1:
            dense.reshape(-1)[indices] = values
        else:
            dense[tuple(indices.T)] = values
        return dense


@dataclass(frozen=True, eq=False)
class OpaquePayload:
    """A node that the library does not look into. `captures` are the outer values that its subgraphs read by
    name.
    """

    proto: onnx.NodeProto
    captures: tuple[str, ...] = ()

    @cached_property
    def digest(self) -> str:
        anonymous = onnx.NodeProto()
        anonymous.CopyFrom(self.proto)
        for field in ("name", "doc_string", "input", "output", "attribute", "metadata_props"):
            anonymous.ClearField(field)
        anonymous.attribute.extend(sorted(self.proto.attribute, key=lambda a: str(a.name)))
        return blake2b(
            anonymous.SerializeToString(deterministic=True) + repr(self.captures).encode(), digest_size=16
        ).hexdigest()


def copy_fields(source: Message, target: Message, skipped: Set[str]) -> None:
    """Copy a message but for some fields, which may be too large to copy."""
    for field, value in source.ListFields():
        if field.name in skipped:
            continue
        if field.is_repeated:
            getattr(target, field.name).MergeFrom(value)
        elif field.message_type is not None:
            getattr(target, field.name).CopyFrom(value)
        else:
            setattr(target, field.name, value)
