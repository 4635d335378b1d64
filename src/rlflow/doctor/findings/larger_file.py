"""A file that is larger than it need be: weights that nobody reads, and notes that exporters leave on nodes."""

from __future__ import annotations

from collections.abc import Iterator

from onnx import GraphProto, ModelProto

from rlflow.doctor.finding import Finding, counted
from rlflow.doctor.subject import Subject
from rlflow.equivalence.tolerance import bodies
from rlflow.onnx_io.data_place import stored_bytes
from rlflow.onnx_io.external_data import copy_fields
from rlflow.onnx_io.node_proto import captured_names

_LEAST_BYTES = 1024
"""Less is not worth a sentence."""
_NOTES = ("doc_string", "metadata_props")


def larger_file(subject: Subject) -> Iterator[Finding]:
    """Add up what the file could do without."""
    model = subject.model
    idle = _idle_weights(model)
    weights = sum(stored_bytes(tensor) for tensor in model.graph.initializer if tensor.name in idle)
    slim = _without(model, idle)
    notes = _structure_bytes(model) - _structure_bytes(slim)
    if weights + notes < _LEAST_BYTES:
        return
    yield Finding(
        f"{counted(len(idle), 'weight')} of {weights / 1e6:.2f} MB that no node reads, and notes on nodes of "
        f"{notes / 1e6:.2f} MB",
        "Leave them out, as `-o` does here.",
        bytes_saved=weights + notes,
        remedy=slim,
    )


def _idle_weights(model: ModelProto) -> frozenset[str]:
    """Weights that no node reads and that are neither an output nor the default of an input."""
    graph = model.graph
    read = {name for node in graph.node for name in (*node.input, *captured_names(node))}
    known = read | {value.name for value in (*graph.input, *graph.output)}
    return frozenset(tensor.name for tensor in graph.initializer if tensor.name not in known)


def _without(model: ModelProto, idle: frozenset[str]) -> ModelProto:
    """Copy a model without some weights and without the notes on its nodes."""
    slim = ModelProto()
    copy_fields(model, slim, skipped={"graph"})
    copy_fields(model.graph, slim.graph, skipped={"initializer"})
    slim.graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name not in idle)
    _clear_notes(slim.graph)
    return slim


def _clear_notes(graph: GraphProto) -> None:
    for node in graph.node:
        for name in _NOTES:
            node.ClearField(name)
        for body in bodies(node):
            _clear_notes(body)


def _structure_bytes(model: ModelProto) -> int:
    """The bytes of the nodes, with what they hold."""
    return sum(node.ByteSize() for node in model.graph.node)
