"""The part of a model's outputs that its caller reads, as operators at the end of the graph.

    read = parse_read("logits[:, -1]")                  of every sequence the last token
    model = reading(model, [read])                      logits (1, 128, 50257) becomes logits (1, 50257)

Rules carry the index from the end of the graph towards its beginning, so that less is computed.

Invariant: an output holds what numpy gives for the same index of the whole output, under the same name; an output that
is in no read is gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto, helper, numpy_helper

from rlflow.errors import InputError
from rlflow.onnx_io.subgraphs import all_names, rename_values

Index = int | slice
_READ = re.compile(r"(?P<name>.*?)(\[(?P<index>[^\[\]]*)\])?", re.DOTALL)
_INT = r"\s*-?\d+\s*"
_INDEX = re.compile(rf"(?P<int>{_INT})|(?P<start>{_INT}|\s*):(?P<stop>{_INT}|\s*)(:(?P<step>{_INT}|\s*))?")
_LAST = np.iinfo(np.int64).max
_SLICE_BY_INPUTS, _NEGATIVE_GATHER = 10, 11
"""Opsets of ai.onnx from which Slice takes its ends as inputs, and Gather an index from the end."""


@dataclass(frozen=True)
class Read:
    """An output's name, and the index of each axis from the first on; later axes are read whole."""

    output: str
    index: tuple[Index, ...] = ()


def parse_read(text: str) -> Read:
    """Return what a text like `logits[:, -1]` reads. `InputError` for a text that is no such index."""
    found = _READ.fullmatch(text.strip())
    axes = [] if found is None or found["index"] is None else found["index"].split(",")
    parsed = [_INDEX.fullmatch(axis) for axis in axes]
    if found is None or not found["name"] or not all(parsed):
        raise InputError(
            f"{text!r} reads no output: write its name and an index of whole numbers and slices, as in logits[:, -1]"
        )
    return Read(found["name"], tuple(_index(axis) for axis in parsed if axis is not None))


def reading(model: ModelProto, reads: Sequence[Read]) -> ModelProto:
    """Return a model with the outputs that are read, in their order, each as its index has it.

    `InputError` for an output that there is not, or that has no such index.
    """
    read_twice = {read.output for read in reads if sum(read.output == other.output for other in reads) > 1}
    if read_twice:
        raise InputError(f"read twice: {', '.join(sorted(read_twice))}")
    result = ModelProto()
    result.CopyFrom(model)
    graph, opset = result.graph, next(one.version for one in model.opset_import if one.domain in ("", "ai.onnx"))
    outputs = {output.name: output for output in model.graph.output}
    del graph.output[:]
    for read in reads:
        if read.output not in outputs:
            raise InputError(f"there is no output {read.output!r}: choose from {', '.join(outputs)}")
        graph.output.append(_read(graph, outputs[read.output], read.index, opset))
    return result


def _index(found: re.Match[str]) -> Index:
    if found["int"] is not None:
        return int(found["int"])
    start, stop, step = (int(end) if end and end.strip() else None for end in found.group("start", "stop", "step"))
    if step is not None and step < 1:
        raise InputError(f"{found[0].strip()!r} goes backwards: a step must be 1 or more")
    return slice(start, stop, step)


def _read(graph: GraphProto, output: ValueInfoProto, index: Sequence[Index], opset: int) -> ValueInfoProto:
    """Append the operators that index the output to the graph, and return the output as they leave it."""
    if all(axis == slice(None) for axis in index):
        return output
    name, tensor = output.name, output.type.tensor_type
    if not output.type.HasField("tensor_type") or not tensor.HasField("shape"):
        raise InputError(f"output {name!r} declares no shape, so that nothing is known of its axes")
    sizes = [axis.dim_value if axis.HasField("dim_value") else axis.dim_param or None for axis in tensor.shape.dim]
    if len(index) > len(sizes):
        raise InputError(f"output {name!r} has {len(sizes)} axes, and the index {len(index)}")
    if name in {value.name for value in (*graph.input, *graph.initializer)}:
        raise InputError(f"output {name!r} is an input or a constant of the model: nothing computes it")
    whole = _fresh(graph, f"{name}/whole")
    rename_values(graph, {name: whole})
    for number, axis in enumerate(index):
        _check_place(name, axis, sizes[number])
    graph.node.extend(_operators(graph, whole, name, index, opset))
    read = [_size(axis, sizes[number]) for number, axis in enumerate(index) if not isinstance(axis, int)]
    return helper.make_tensor_value_info(name, tensor.elem_type, [*read, *sizes[len(index) :]])


def _check_place(name: str, index: Index, size: int | str | None) -> None:
    if isinstance(index, int) and isinstance(size, int) and not -size <= index < size:
        raise InputError(f"output {name!r} has no place {index} on an axis of {size}")


def _size(index: slice, size: int | str | None) -> int | str | None:
    """The size of an axis after a slice, None where that is open."""
    if index == slice(None):
        return size
    return len(range(*index.indices(size))) if isinstance(size, int) else None


def _operators(graph: GraphProto, x: str, y: str, index: Sequence[Index], opset: int) -> Iterator[NodeProto]:
    """Yield one Slice for all slices, then a Gather for each whole number, the last axis first, and their constants.

    Rules know a place by its Gather. In opsets whose Gather has no places from the end, it is a slice, and one Squeeze
    takes the axes of all places away.
    """
    places = {axis: place for axis, place in enumerate(index) if isinstance(place, int)}
    slices = {axis: part for axis, part in enumerate(index) if isinstance(part, slice) and part != slice(None)}
    if opset < _NEGATIVE_GATHER:
        slices |= {axis: slice(place, place + 1 or None) for axis, place in places.items()}
    steps = bool(slices) + (len(places) if opset >= _NEGATIVE_GATHER else bool(places))
    values = iter([*(_fresh(graph, f"{y}/{number}") for number in range(steps - 1)), y])
    if slices:
        value = next(values)
        yield from _slice(graph, x, value, slices, opset)
        x = value
    if opset < _NEGATIVE_GATHER:
        for value in values:
            yield helper.make_node("Squeeze", [x], [value], name=value, axes=[*places])
        return
    for axis, value in zip(sorted(places, reverse=True), values, strict=True):
        place = _constant(graph, f"{value}/index", places[axis])
        yield place
        yield helper.make_node("Gather", [x, *place.output], [value], name=value, axis=axis)
        x = value


def _slice(graph: GraphProto, x: str, y: str, slices: Mapping[int, slice], opset: int) -> Iterator[NodeProto]:
    ends: dict[str, Any] = {
        "starts": [part.start or 0 for part in slices.values()],
        "ends": [_LAST if part.stop is None else part.stop for part in slices.values()],
        "axes": [*slices],
        "steps": [part.step or 1 for part in slices.values()],
    }
    if opset >= _SLICE_BY_INPUTS:
        constants = [_constant(graph, f"{y}/{name}", value) for name, value in ends.items()]
        yield from constants
        yield helper.make_node("Slice", [x, *(one.output[0] for one in constants)], [y], name=y)
        return
    if set(ends.pop("steps")) != {1}:
        raise InputError(f"opset {opset} slices by steps of 1 alone")
    yield helper.make_node("Slice", [x], [y], name=y, **ends)


def _constant(graph: GraphProto, name: str, value: int | Sequence[int]) -> NodeProto:
    """A node, since models of old versions of ONNX declare their initialisers as inputs, too."""
    name = _fresh(graph, name)
    tensor = numpy_helper.from_array(np.array(value, np.int64), name)
    return helper.make_node("Constant", [], [name], name=name, value=tensor)


def _fresh(graph: GraphProto, name: str) -> str:
    """The name, or a longer one if there is a value of that name."""
    taken = set(all_names(graph))
    while name in taken:
        name += "_"
    return name
