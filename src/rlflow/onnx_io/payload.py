"""What the graph refers to and never copies: weights, and nodes that are carried verbatim."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from math import prod
from pathlib import Path

import numpy as np
import onnx
from google.protobuf.message import Message
from onnx import external_data_helper, helper, numpy_helper

from rlflow.errors import ModelFormatError

_PACKED_BITS = {"INT2": 2, "UINT2": 2, "INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "FLOAT6E2M3": 6, "FLOAT6E3M2": 6}
_UNREADABLE = (OSError, ValueError, TypeError, RuntimeError, onnx.checker.ValidationError)


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
        except _UNREADABLE as error:
            raise _unusable(self.proto, error) from None

    def self_contained(self) -> onnx.TensorProto:
        """The tensor with its data inside, read from the model's folder where it lies outside."""
        if self.proto.data_location != onnx.TensorProto.EXTERNAL:
            return self.proto
        loaded = onnx.TensorProto()
        loaded.CopyFrom(self.proto)
        read_in(loaded, self.folder)
        return loaded

    def check(self) -> None:
        """`ModelFormatError` unless the data fill the shape; what lies in a file beside the model is not read."""
        tensor = self.proto
        needed = prod(tensor.dims)
        if tensor.data_type == onnx.TensorProto.STRING:
            held = len(tensor.string_data)
        elif tensor.data_location == onnx.TensorProto.EXTERNAL:
            held, needed = _bytes_outside(tensor, self.folder), _stored_bytes(tensor)
        elif tensor.HasField("raw_data"):
            held, needed = len(tensor.raw_data), _stored_bytes(tensor)
        else:
            held = self.array().size
        if held != needed:
            raise _unusable(tensor, f"its data has a size of {held} instead of {needed}")


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
    folder: Path | None = None

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


def tensors_in(node: onnx.NodeProto) -> Iterator[onnx.TensorProto]:
    """What the node holds in its attributes and in its subgraphs."""
    for attribute in node.attribute:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        for graph in (attribute.g, *attribute.graphs):
            yield from graph.initializer
            for inner in graph.node:
                yield from tensors_in(inner)


def read_in(tensor: onnx.TensorProto, folder: Path | None) -> None:
    """Bring data that lie in a file beside the model into the tensor."""
    if tensor.data_location != onnx.TensorProto.EXTERNAL:
        return
    try:
        external_data_helper.load_external_data_for_tensor(tensor, str(folder or Path()))
    except _UNREADABLE as error:
        raise _unusable(tensor, error) from None
    tensor.ClearField("external_data")
    tensor.data_location = onnx.TensorProto.DEFAULT


def _unusable(tensor: onnx.TensorProto, reason: object) -> ModelFormatError:
    return ModelFormatError(f"weight {tensor.name!r} of shape {list(tensor.dims)}: {reason}")


def _stored_bytes(tensor: onnx.TensorProto) -> int:
    packed = _PACKED_BITS.get(onnx.TensorProto.DataType.Name(tensor.data_type))
    bits = packed or 8 * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    return -(-prod(tensor.dims) * bits // 8)


def _bytes_outside(tensor: onnx.TensorProto, folder: Path | None) -> int:
    """What the tensor is given of its file; negative where it would begin before or behind it."""
    place = {entry.key: entry.value for entry in tensor.external_data}
    try:
        offset = int(place.get("offset", 0))
        present = ((folder or Path()) / place["location"]).stat().st_size - offset
        return min(offset, 0) or min(present, int(place.get("length", present)))
    except (KeyError, *_UNREADABLE) as error:
        raise _unusable(tensor, error) from None


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
