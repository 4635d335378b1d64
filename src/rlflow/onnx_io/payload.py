"""Payloads, which a graph refers to and never copies: weights, and nodes that are carried verbatim."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from math import prod

import numpy as np
import onnx
from onnx import numpy_helper

from rlflow.onnx_io.data_place import UNREADABLE, is_outside, place_of, stored_bytes, unusable
from rlflow.onnx_io.external_data import mapped, mapped_array, read_in


@dataclass(frozen=True, eq=False)
class InitializerPayload:
    """A weight, held as the model's own TensorProto (whose data may lie in a file beside the model)."""

    proto: onnx.TensorProto

    @classmethod
    def of(cls, values: np.ndarray, name: str) -> InitializerPayload:
        """The weight of these values, under this name."""
        return cls(numpy_helper.from_array(values, name))

    @cached_property
    def digest(self) -> str:
        """The same for equal values, wherever and in whichever of ONNX's fields they are stored."""
        hasher = blake2b(f"{self.proto.data_type}{list(self.proto.dims)}".encode(), digest_size=16)
        if self.proto.data_type == onnx.TensorProto.STRING:
            hasher.update(repr(list(self.proto.string_data)).encode())
        elif is_outside(self.proto):
            hasher.update(mapped(self.proto).data)
        elif self.proto.HasField("raw_data"):
            hasher.update(self.proto.raw_data)
        else:
            hasher.update(numpy_helper.from_array(self.array()).raw_data)
        return hasher.hexdigest()

    def array(self) -> np.ndarray:
        """The values, mapped from their file where they lie in one; `ModelFormatError` where they do not fill the
        shape.
        """
        if is_outside(self.proto):
            values = mapped_array(self.proto)
            return values if values is not None else InitializerPayload(self.self_contained()).array()
        try:
            return numpy_helper.to_array(self.proto)
        except UNREADABLE as error:
            raise unusable(self.proto, error) from None

    def self_contained(self) -> onnx.TensorProto:
        """The tensor with its data inside, read from their file where they lie in one."""
        if not is_outside(self.proto):
            return self.proto
        loaded = onnx.TensorProto()
        loaded.CopyFrom(self.proto)
        read_in(loaded)
        return loaded

    def check(self) -> None:
        """`ModelFormatError` unless the data fill the shape; what lies in a file beside the model is not read."""
        tensor = self.proto
        needed = prod(tensor.dims)
        if any(size < 0 for size in tensor.dims):
            raise unusable(tensor, "it has a dimension below 0")
        if tensor.data_type == onnx.TensorProto.STRING:
            held = len(tensor.string_data)
        elif is_outside(tensor):
            place_of(tensor)
            return
        elif tensor.HasField("raw_data"):
            held, needed = len(tensor.raw_data), stored_bytes(tensor)
        else:
            held = self.array().size
        if held != needed:
            raise unusable(tensor, f"its data has a size of {held} instead of {needed}")


@dataclass(frozen=True, eq=False)
class SparsePayload:
    """A sparse weight, carried verbatim; coordinates are linear or one row an element (ONNX, SparseTensorProto)."""

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
class FilledPayload:
    """One number everywhere (ConstantOfShape), which takes no memory. `value` is a tensor of one element."""

    value: onnx.TensorProto
    shape: tuple[int, ...]

    @cached_property
    def digest(self) -> str:
        return f"filled {InitializerPayload(self.value).digest} {self.shape}"

    def array(self) -> np.ndarray:
        """A view of the one element."""
        return np.broadcast_to(InitializerPayload(self.value).array().reshape(()), self.shape)


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
