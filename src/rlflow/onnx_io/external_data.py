"""Weights in files beside a model: mapped into memory, referred to from elsewhere, read in, written.

A model whose weights do not fit into one protobuf message is never held whole: its weights stay in their files, to
which it refers by absolute path (`refer`), as long as it is in memory. In a file it refers to its own folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from math import prod
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from google.protobuf.message import Message
from onnx import ModelProto, NodeProto, TensorProto, helper

from rlflow.errors import ModelFormatError

MESSAGE_LIMIT_BYTES = 2**31 - 2**24
"""Of weights: protobuf refuses messages of 2 GiB, and the margin is for everything else."""
_MOVED_FROM_BYTES = 1024
"""What is smaller stays in the model: ONNX Runtime reads shapes and axes early."""
_PACKED_BITS = {"INT2": 2, "UINT2": 2, "INT4": 4, "UINT4": 4, "FLOAT4E2M1": 4, "FLOAT6E2M3": 6, "FLOAT6E3M2": 6}
_UNREADABLE = (OSError, ValueError, TypeError, RuntimeError)


class Place(NamedTuple):
    """Where data lie: bytes of a file."""

    path: Path
    offset: int
    length: int


def is_outside(tensor: TensorProto) -> bool:
    return tensor.data_location == TensorProto.EXTERNAL


def place_of(tensor: TensorProto, folder: Path | None) -> Place:
    """Where the data of a tensor of a model in `folder` lie, as far as the file goes; the length is negative where they
    would begin before or behind it.

    `ModelFormatError` where there is no such file or the path leaves the folder.
    """
    entries = {entry.key: entry.value for entry in tensor.external_data}
    try:
        location = Path(entries["location"])
        if ".." in location.parts:
            raise ValueError(f"{location} leaves the model's folder")
        path, offset = (folder or Path()) / location, int(entries.get("offset", 0))
        present = path.stat().st_size - offset
        return Place(path, offset, min(offset, 0) or min(present, int(entries.get("length", present))))
    except (KeyError, *_UNREADABLE) as error:
        raise unusable(tensor, error) from None


def mapped(tensor: TensorProto, folder: Path | None) -> np.ndarray:
    """The stored bytes (uint8), which come from the file when they are touched and can be forgotten again."""
    path, offset, length = place_of(tensor, folder)
    try:
        return np.memmap(path, np.uint8, "r", offset, (length,)) if length else np.empty(0, np.uint8)
    except _UNREADABLE as error:
        raise unusable(tensor, error) from None


def mapped_array(tensor: TensorProto, folder: Path | None) -> np.ndarray | None:
    """The values, mapped; None where several of them share a byte."""
    if is_packed(tensor):
        return None
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type).newbyteorder("<")
    try:
        return mapped(tensor, folder).view(dtype).reshape(tuple(tensor.dims))
    except _UNREADABLE as error:
        raise unusable(tensor, error) from None


def read_in(tensor: TensorProto, folder: Path | None) -> None:
    """Bring data that lie in a file into the tensor."""
    if is_outside(tensor):
        tensor.raw_data = mapped(tensor, folder).tobytes()
        tensor.ClearField("external_data")
        tensor.data_location = TensorProto.DEFAULT


def refer(tensor: TensorProto, folder: Path | None) -> None:
    """Let a tensor whose data lie in a file say so wherever the model goes."""
    for entry in tensor.external_data:
        if is_outside(tensor) and entry.key == "location":
            entry.value = str(((folder or Path()) / entry.value).absolute())


def settle(model: ModelProto, folder: Path | None) -> None:
    """Read weights in, as far as they fit into a message together; if they do not, refer to them.

    What nodes hold themselves is read in: in subgraphs ONNX's checker takes no reference to another folder.
    """
    place = placement(model.graph.initializer)
    for tensor in model.graph.initializer:
        place(tensor, folder)
    for tensor in _held_by_nodes(model):
        read_in(tensor, folder)


def placement(tensors: Iterable[TensorProto]) -> Callable[[TensorProto, Path | None], None]:
    """What to do with tensors outside that become one model: `read_in` or `refer`."""
    return read_in if _bytes_of(filter(is_outside, tensors)) <= MESSAGE_LIMIT_BYTES else refer


def inside_bytes(model: ModelProto) -> int:
    """Bytes of the weights that the model holds itself."""
    return _bytes_of(tensor for tensor in model.graph.initializer if not is_outside(tensor))


def outside_bytes(model: ModelProto) -> int:
    """Bytes of the weights in files to which the model refers wherever it is."""
    return _bytes_of(filter(_is_referred_to, tensors_of(model)))


def with_weights_in(model: ModelProto, data: Path) -> ModelProto:
    """A model whose large weights lie in the file `data`, of its own folder; `model` is left as it is."""
    with data.open("wb") as file:
        slim = _with_weights_inside_moved(model, file, data.name)
        for tensor in filter(_is_referred_to, tensors_of(slim)):
            _move(tensor, mapped(tensor, None).data, file, data.name)
    return slim


def within_reach(model: ModelProto, data: Path) -> ModelProto:
    """A slim model with paths from the file system's root, without which ONNX Runtime takes none of another folder.

    What `model` holds itself is written to the file `data`; what lies in files already stays there.
    """
    with data.open("wb") as file:
        slim = _with_weights_inside_moved(model, file, str(data.absolute()))
    for tensor in filter(_is_referred_to, tensors_of(slim)):
        (entry,) = (entry for entry in tensor.external_data if entry.key == "location")
        entry.value = str(Path(entry.value).relative_to(Path(entry.value).anchor))
    return slim


def tensors_of(model: ModelProto) -> Iterator[TensorProto]:
    """Weights and what the nodes hold."""
    yield from model.graph.initializer
    yield from _held_by_nodes(model)


def _held_by_nodes(model: ModelProto) -> Iterator[TensorProto]:
    for node in (*model.graph.node, *(node for function in model.functions for node in function.node)):
        yield from tensors_in(node)


def tensors_in(node: NodeProto) -> Iterator[TensorProto]:
    """What the node holds in its attributes and in its subgraphs."""
    for attribute in node.attribute:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        for graph in (attribute.g, *attribute.graphs):
            yield from graph.initializer
            for inner in graph.node:
                yield from tensors_in(inner)


def is_packed(tensor: TensorProto) -> bool:
    """Whether elements share bytes."""
    return TensorProto.DataType.Name(tensor.data_type) in _PACKED_BITS


def stored_bytes(tensor: TensorProto) -> int:
    """What the values take in a file, which holds no strings."""
    packed = _PACKED_BITS.get(TensorProto.DataType.Name(tensor.data_type))
    bits = packed or 8 * helper.tensor_dtype_to_np_dtype(tensor.data_type).itemsize
    return -(-prod(tensor.dims) * bits // 8)


def unusable(tensor: TensorProto, reason: object) -> ModelFormatError:
    return ModelFormatError(f"weight {tensor.name!r} of shape {list(tensor.dims)}: {reason}")


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


def _with_weights_inside_moved(model: ModelProto, file: IO[bytes], location: str) -> ModelProto:
    slim = ModelProto()
    copy_fields(model, slim, skipped={"graph"})
    copy_fields(model.graph, slim.graph, skipped={"initializer"})
    for tensor in model.graph.initializer:
        copy = slim.graph.initializer.add()
        copy_fields(tensor, copy, skipped={"raw_data"})
        if len(tensor.raw_data) >= _MOVED_FROM_BYTES:
            _move(copy, tensor.raw_data, file, location)
        elif tensor.HasField("raw_data"):
            copy.raw_data = tensor.raw_data
    return slim


def _move(tensor: TensorProto, data: bytes | memoryview, file: IO[bytes], location: str) -> None:
    """Write data to the end of the file, and let the tensor find them there."""
    tensor.data_location = TensorProto.EXTERNAL
    del tensor.external_data[:]
    for key, value in {"location": location, "offset": file.tell(), "length": file.write(data)}.items():
        tensor.external_data.add(key=key, value=str(value))


def _is_referred_to(tensor: TensorProto) -> bool:
    return is_outside(tensor) and any(e.key == "location" and Path(e.value).is_absolute() for e in tensor.external_data)


def _bytes_of(tensors: Iterable[TensorProto]) -> int:
    return sum(stored_bytes(t) for t in tensors if t.data_type not in (TensorProto.STRING, TensorProto.UNDEFINED))
