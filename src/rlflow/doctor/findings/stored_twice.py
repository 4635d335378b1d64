"""Weights that the file stores twice: equal in type, shape and every bit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from onnx import GraphProto, ModelProto

from rlflow.doctor.finding import Finding, counted
from rlflow.doctor.subject import Subject
from rlflow.equivalence.tolerance import bodies
from rlflow.onnx_io.data_place import stored_bytes
from rlflow.onnx_io.external_data import copy_fields
from rlflow.onnx_io.payload import InitializerPayload

_LEAST_BYTES = 1024
"""Smaller weights are not worth a sentence."""


def stored_twice(subject: Subject) -> Iterator[Finding]:
    """Find equal initializers of the main graph, and let all read the first."""
    copies = _copies(subject.model)
    if not copies:
        return
    saved = sum(stored_bytes(t) for t in subject.model.graph.initializer if t.name in copies)
    yield Finding(
        f"{counted(len(copies), 'weight')} of {saved / 1e6:.2f} MB are equal to another one to the bit",
        "Store them once, as `-o` does here: the file and the memory of every session are smaller by that.",
        bytes_saved=saved,
        remedy=_with_one_of_each(subject.model, copies),
    )


def _copies(model: ModelProto) -> dict[str, str]:
    """The weights that are equal to one before them, by name, with its name.

    An input's default is none of them, nor is an output of any graph.
    """
    first: dict[str, str] = {}
    copies: dict[str, str] = {}
    fixed = {value.name for value in model.graph.input} | set(_outputs(model.graph))
    for tensor in model.graph.initializer:
        if tensor.name in fixed or stored_bytes(tensor) < _LEAST_BYTES:
            continue
        original = first.setdefault(InitializerPayload(tensor).digest, tensor.name)
        if original != tensor.name:
            copies[tensor.name] = original
    return copies


def _outputs(graph: GraphProto) -> Iterator[str]:
    """The names of the outputs of a graph and of all inside it."""
    yield from (output.name for output in graph.output)
    for node in graph.node:
        for body in bodies(node):
            yield from _outputs(body)


def _with_one_of_each(model: ModelProto, copies: Mapping[str, str]) -> ModelProto:
    """Copy a model but for some weights, whose readers read others."""
    slim = ModelProto()
    copy_fields(model, slim, skipped={"graph"})
    copy_fields(model.graph, slim.graph, skipped={"initializer"})
    slim.graph.initializer.extend(t for t in model.graph.initializer if t.name not in copies)
    _rename(slim.graph, copies)
    return slim


def _rename(graph: GraphProto, names: Mapping[str, str]) -> None:
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        for body in bodies(node):
            _rename(body, names)
