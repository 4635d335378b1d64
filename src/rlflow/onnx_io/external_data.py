"""Weights in files beside a model: mapped into memory, referred to from elsewhere, read in, written.

A protobuf message holds less than 2 GiB, so ONNX lets a tensor name a file, an offset and a length instead of its data:

    external_data: [location=model.weights, offset=4096, length=1048576]

When its file is read, `bring` makes each `location` the absolute path of the data's own file, whatever links lead
there, so that the model may be used from any folder; `settle` reads the data in if they fit into a message together.
Written to a file, a model refers to its own folder again (`with_weights_in`).

A session of a model whose weights are mapped opens in a third of the time (`write_mapped`; BERT-Base, 0.4 GB).

Invariants: a model is never held whole if its weights do not fit into a message; a file is opened only if it lies in
one of the folders that the user named with the model's own path, and only if the data fill the weight (`data_place`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import IO

import numpy as np
from google.protobuf.message import Message
from onnx import ModelProto, NodeProto, SparseTensorProto, TensorProto, helper

from rlflow.onnx_io.data_place import UNREADABLE, is_outside, is_packed, place_of, stored_bytes, unusable

MESSAGE_LIMIT_BYTES = 2**31 - 2**24
"""The most bytes of weights in a message: protobuf refuses 2 GiB, and the margin is for everything else."""
_MOVED_FROM_BYTES = 1024
"""Smaller tensors stay in the model: ONNX Runtime reads shapes and axes before it opens files."""


def mapped(tensor: TensorProto, homes: Sequence[Path] = ()) -> np.ndarray:
    """Map the stored bytes, uint8 (length,): they are read from the file when touched, and the system may drop them."""
    path, offset, length = place_of(tensor, homes)
    try:
        return np.memmap(path, np.uint8, "r", offset, (length,)) if length else np.empty(0, np.uint8)
    except UNREADABLE as error:
        raise unusable(tensor, error) from None


def mapped_array(tensor: TensorProto) -> np.ndarray | None:
    """Map the values, in the shape of the tensor; None if several of them share a byte."""
    if is_packed(tensor):
        return None
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type).newbyteorder("<")
    try:
        return mapped(tensor).view(dtype).reshape(tuple(tensor.dims))
    except UNREADABLE as error:
        raise unusable(tensor, error) from None


def read_in(tensor: TensorProto, homes: Sequence[Path] = ()) -> None:
    """Bring data that lie in a file into the tensor itself."""
    if is_outside(tensor):
        tensor.raw_data = mapped(tensor, homes).tobytes()
        tensor.ClearField("external_data")
        tensor.data_location = TensorProto.DEFAULT


def refer(tensor: TensorProto, homes: Sequence[Path] = ()) -> None:
    """Let a tensor whose data lie in a file name that file by its absolute path, which is valid from every folder."""
    if is_outside(tensor):
        path, offset, length = place_of(tensor, homes)
        _point(tensor, str(path.resolve()), offset, length)


def bring(model: ModelProto, homes: Sequence[Path]) -> None:
    """Let a model that was read from a file be used from everywhere; its data lie in the folders `homes`.

    Tensors that nodes hold are read in: in subgraphs ONNX's checker takes no reference to another folder.
    """
    for tensor in model.graph.initializer:
        refer(tensor, homes)
    for tensor in _held(model):
        read_in(tensor, homes)


def settle(model: ModelProto) -> None:
    """Read the weights to which a model refers in, if they fit into a message together."""
    place = placement(model.graph.initializer)
    for tensor in model.graph.initializer:
        place(tensor)


def settled(model: ModelProto) -> ModelProto:
    """Return a model that refers to no file if its weights fit into a message; `model` is left as it is."""
    if not outside_bytes(model):
        return model
    copy = ModelProto()
    copy.CopyFrom(model)
    settle(copy)
    return copy


def placement(tensors: Iterable[TensorProto]) -> Callable[[TensorProto], None]:
    """Choose `read_in` or `refer` for the tensors of one model, by the bytes of those that lie outside."""
    return read_in if _bytes_of(filter(is_outside, tensors)) <= MESSAGE_LIMIT_BYTES else refer


def inside_bytes(model: ModelProto) -> int:
    """Return the bytes of the weights that the model holds itself."""
    return _bytes_of(tensor for tensor in model.graph.initializer if not is_outside(tensor))


def outside_bytes(model: ModelProto) -> int:
    """Return the bytes of the weights in files to which the model refers by absolute path."""
    return _bytes_of(filter(_is_referred_to, tensors_of(model)))


def with_weights_in(model: ModelProto, data: Path, like: ModelProto | None = None) -> ModelProto:
    """Return a model whose large weights lie in the file `data` in its own folder; `model` is left as it is.

    Those that `like`, a model in the same folder, has under the same name stay where it has them.
    """
    present = {} if like is None else {tensor.name: tensor for tensor in filter(is_outside, like.graph.initializer)}
    with data.open("wb") as file:
        slim = _with_weights_inside_moved(model, file, data.name, present)
        for tensor in filter(_is_referred_to, tensors_of(slim)):
            _move(tensor, mapped(tensor).data, file, data.name)
    return slim


def write_mapped(model: ModelProto, path: Path, like: Path | None = None) -> Path:
    """Write a model to a file, with its large weights in another one beside it, and return the file.

    `like` is the file of a model that was written so to the same folder: weights of both are not written again.
    """
    other = None if like is None else ModelProto.FromString(like.read_bytes())
    path.write_bytes(with_weights_in(model, path.with_suffix(".weights"), other).SerializeToString())
    return path


def within_reach(model: ModelProto, data: Path) -> ModelProto:
    """Return a slim model with paths from the root of the file system, where ONNX Runtime can reach every folder.

    Weights that `model` holds itself are written to the file `data`; those in files stay there.
    """
    with data.open("wb") as file:
        slim = _with_weights_inside_moved(model, file, str(data.absolute()))
    for tensor in filter(_is_referred_to, tensors_of(slim)):
        (entry,) = (entry for entry in tensor.external_data if entry.key == "location")
        entry.value = str(Path(entry.value).relative_to(Path(entry.value).anchor))
    return slim


def tensors_of(model: ModelProto) -> Iterator[TensorProto]:
    """Yield the weights of a model and all tensors that sparse ones and its nodes hold."""
    yield from model.graph.initializer
    yield from _held(model)


def _held(model: ModelProto) -> Iterator[TensorProto]:
    yield from _parts(model.graph.sparse_initializer)
    for node in (*model.graph.node, *(node for function in model.functions for node in function.node)):
        yield from tensors_in(node)


def _parts(sparse: Iterable[SparseTensorProto]) -> Iterator[TensorProto]:
    for tensor in sparse:
        yield from (tensor.values, tensor.indices)


def tensors_in(node: NodeProto) -> Iterator[TensorProto]:
    """Yield the tensors that a node holds in its attributes and in its subgraphs."""
    for attribute in node.attribute:
        if attribute.HasField("t"):
            yield attribute.t
        yield from attribute.tensors
        if attribute.HasField("sparse_tensor"):
            yield from _parts([attribute.sparse_tensor])
        yield from _parts(attribute.sparse_tensors)
        for graph in (attribute.g, *attribute.graphs):
            yield from graph.initializer
            yield from _parts(graph.sparse_initializer)
            for inner in graph.node:
                yield from tensors_in(inner)


def copy_fields(source: Message, target: Message, skipped: Set[str]) -> None:
    """Copy a message except for the `skipped` fields, which may be too large to copy."""
    for field, value in source.ListFields():
        if field.name in skipped:
            continue
        if isinstance(value, str | bytes | int | float):
            setattr(target, field.name, value)
        else:  # a message, or several values
            getattr(target, field.name).MergeFrom(value)


def _with_weights_inside_moved(
    model: ModelProto, file: IO[bytes], location: str, present: Mapping[str, TensorProto] | None = None
) -> ModelProto:
    """Copy a model, with the large weights that it holds itself moved to the end of the file, or to where a tensor of
    `present`, in the folder of the file, has the same data.
    """
    slim = ModelProto()
    copy_fields(model, slim, skipped={"graph"})
    copy_fields(model.graph, slim.graph, skipped={"initializer"})
    for tensor in model.graph.initializer:
        copy = slim.graph.initializer.add()
        # raw_data may be gigabytes: large ones go straight to the file, without a copy in memory.
        copy_fields(tensor, copy, skipped={"raw_data"})
        data, known = tensor.raw_data, (present or {}).get(tensor.name)
        if len(data) < _MOVED_FROM_BYTES:
            if tensor.HasField("raw_data"):
                copy.raw_data = data
        elif known is not None and mapped(known, [Path(file.name).parent]).tobytes() == data:
            copy.data_location = TensorProto.EXTERNAL
            copy.external_data.MergeFrom(known.external_data)
        else:
            _move(copy, data, file, location)
    return slim


def _move(tensor: TensorProto, data: bytes | memoryview, file: IO[bytes], location: str) -> None:
    """Write data to the end of the file, and let the tensor refer to them there."""
    tensor.data_location = TensorProto.EXTERNAL
    _point(tensor, location, file.tell(), file.write(data))


def _point(tensor: TensorProto, location: str, offset: int, length: int) -> None:
    del tensor.external_data[:]
    for key, value in {"location": location, "offset": offset, "length": length}.items():
        tensor.external_data.add(key=key, value=str(value))


def _is_referred_to(tensor: TensorProto) -> bool:
    return is_outside(tensor) and any(e.key == "location" and Path(e.value).is_absolute() for e in tensor.external_data)


def _bytes_of(tensors: Iterable[TensorProto]) -> int:
    return sum(stored_bytes(t) for t in tensors if t.data_type not in (TensorProto.STRING, TensorProto.UNDEFINED))
