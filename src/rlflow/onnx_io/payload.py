"""What the graph refers to and never copies: weights, and nodes that are carried verbatim."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from pathlib import Path

import numpy as np
import onnx
from onnx import external_data_helper, numpy_helper

_INT4_TYPES = {onnx.TensorProto.INT4, onnx.TensorProto.UINT4, onnx.TensorProto.FLOAT4E2M1}


@dataclass(frozen=True, eq=False)
class InitializerPayload:
    """A weight, held as the model's own TensorProto (whose data may lie in a file beside the model)."""

    proto: onnx.TensorProto
    folder: Path | None = None

    @cached_property
    def digest(self) -> str:
        hasher = blake2b(f"{self.proto.data_type}{list(self.proto.dims)}".encode(), digest_size=16)
        if self.proto.HasField("raw_data"):
            hasher.update(self.proto.raw_data)
        elif self.proto.data_location == onnx.TensorProto.EXTERNAL or self.proto.data_type in _INT4_TYPES:
            hasher.update(str([(e.key, e.value) for e in self.proto.external_data]).encode())
            hasher.update(self.array().tobytes())
        else:
            anonymous = onnx.TensorProto()
            anonymous.CopyFrom(self.proto)
            anonymous.ClearField("name")
            anonymous.ClearField("doc_string")
            hasher.update(anonymous.SerializeToString(deterministic=True))
        return hasher.hexdigest()

    def array(self) -> np.ndarray:
        return numpy_helper.to_array(self.proto, base_dir=str(self.folder) if self.folder else "")

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
    """A sparse weight, carried verbatim."""

    proto: onnx.SparseTensorProto

    @cached_property
    def digest(self) -> str:
        anonymous = onnx.SparseTensorProto()
        anonymous.CopyFrom(self.proto)
        anonymous.values.ClearField("name")
        return blake2b(anonymous.SerializeToString(deterministic=True), digest_size=16).hexdigest()


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
        for field in ("name", "doc_string", "input", "output"):
            anonymous.ClearField(field)
        return blake2b(
            anonymous.SerializeToString(deterministic=True) + repr(self.captures).encode(), digest_size=16
        ).hexdigest()
