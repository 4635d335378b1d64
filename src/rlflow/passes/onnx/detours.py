"""Models as careless exporters write them: detours between nodes that compute nothing.

    y = MatMul(x, w)        becomes        y' = MatMul(x, w); y = Reshape(y', Concat(Shape(y')[0:1], -1, 32))

Tracing exporters write shapes as they are computed, dropouts of training, casts to the type that a value has, pairs of
transpositions around what was written in another layout, paddings of nothing. Each has its pass among the libraries;
here every `_EVERY`th value of floats gets one of them, drawn by a seeded generator.

Invariant: the model computes what it computed, and has its inputs and outputs; same model, same detours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

_EVERY = 3
_Detour = Callable[["_Writer", str, str, int], None]


def with_detours(model: ModelProto, seed: int = 0) -> ModelProto:
    """Return the model with detours; where a value's rank is not known, or the opset is older than 13, it has none."""
    inferred = onnx.shape_inference.infer_shapes(model)
    if next((o.version for o in model.opset_import if o.domain in ("", "ai.onnx")), 0) < 13:
        return inferred
    shapes = {
        value.name: [d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in inferred.graph.value_info
        if value.type.tensor_type.elem_type == TensorProto.FLOAT and value.type.tensor_type.HasField("shape")
    }
    rng = np.random.default_rng(seed)
    writer = _Writer(inferred)
    places = [place for place, node in enumerate(inferred.graph.node) if node.output[0] in shapes]
    chosen = {place for place in places if rng.random() < 1 / _EVERY}
    for place, node in enumerate(inferred.graph.node):
        name = node.output[0]
        if place not in chosen:
            writer.keep(node)
            continue
        node.output[0] = f"{name}_before"
        writer.keep(node)
        fitting = [detour for detour, least in _DETOURS if len(shapes[name]) >= least]
        fitting[rng.integers(len(fitting))](writer, f"{name}_before", name, len(shapes[name]))
    return writer.written()


class _Writer:
    """The nodes and constants of the model that is being written."""

    def __init__(self, model: ModelProto) -> None:
        self.model = model
        self.nodes: list[NodeProto] = []

    def keep(self, node: NodeProto) -> None:
        copy = NodeProto()
        copy.CopyFrom(node)
        self.nodes.append(copy)

    def constant(self, name: str, values: object, dtype: type = np.int64) -> str:
        tensor = numpy_helper.from_array(np.array(values, dtype), name)
        self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
        return name

    def node(self, op_type: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op_type, inputs, [output], name=f"{output}_{op_type}", **attributes))
        return output

    def written(self) -> ModelProto:
        del self.model.graph.node[:], self.model.graph.value_info[:]
        self.model.graph.node.extend(self.nodes)
        return self.model


def _identity(w: _Writer, x: str, y: str, rank: int) -> None:
    w.node("Identity", [x], y)


def _dropout(w: _Writer, x: str, y: str, rank: int) -> None:
    w.node("Dropout", [x], y)


def _cast(w: _Writer, x: str, y: str, rank: int) -> None:
    w.node("Cast", [x], y, to=TensorProto.FLOAT)


def _there_and_back(w: _Writer, x: str, y: str, rank: int) -> None:
    order = [*range(rank - 2), rank - 1, rank - 2]
    w.node("Transpose", [w.node("Transpose", [x], f"{y}_turned", perm=order)], y, perm=order)


def _as_computed(w: _Writer, x: str, y: str, rank: int) -> None:
    """Write the shape as tracing does: each size is read, and all are put together again."""
    shape = w.node("Shape", [x], f"{y}_shape")
    first = w.constant(f"{y}_first", 0)
    axes = w.constant(f"{y}_axes", [0])
    size = w.node("Unsqueeze", [w.node("Gather", [shape, first], f"{y}_size"), axes], f"{y}_sizes")
    rest = w.node("Slice", [shape, w.constant(f"{y}_from", [1]), w.constant(f"{y}_to", [rank])], f"{y}_other_sizes")
    whole = w.node("Concat", [size, rest], f"{y}_all_sizes", axis=0)
    w.node("Reshape", [x, whole], y)


def _unsqueezed(w: _Writer, x: str, y: str, rank: int) -> None:
    axes = w.constant(f"{y}_axes", [0])
    w.node("Squeeze", [w.node("Unsqueeze", [x, axes], f"{y}_unsqueezed"), axes], y)


def _sliced(w: _Writer, x: str, y: str, rank: int) -> None:
    bounds = [w.constant(f"{y}_from", [0]), w.constant(f"{y}_to", [2**31 - 1]), w.constant(f"{y}_axes", [rank - 1])]
    w.node("Slice", [x, *bounds], y)


def _padded(w: _Writer, x: str, y: str, rank: int) -> None:
    w.node("Pad", [x, w.constant(f"{y}_pads", [0] * 2 * rank)], y)


def _expanded(w: _Writer, x: str, y: str, rank: int) -> None:
    w.node("Expand", [x, w.constant(f"{y}_ones", [1] * rank)], y)


def _times_one(w: _Writer, x: str, y: str, rank: int) -> None:
    w.node("Mul", [x, w.constant(f"{y}_one", 1.0, np.float32)], y)


def _plus_zero(w: _Writer, x: str, y: str, rank: int) -> None:
    w.node("Add", [x, w.constant(f"{y}_zero", 0.0, np.float32)], y)


def _twice_reshaped(w: _Writer, x: str, y: str, rank: int) -> None:
    flat = w.node("Reshape", [x, w.constant(f"{y}_flat_shape", [-1])], f"{y}_flat")
    w.node("Reshape", [flat, w.node("Shape", [x], f"{y}_shape")], y)


def _not_turned(w: _Writer, x: str, y: str, rank: int) -> None:
    w.node("Transpose", [x], y, perm=list(range(rank)))


def _alone(w: _Writer, x: str, y: str, rank: int) -> None:
    w.node("Concat", [x], y, axis=0)


def _twice_unsqueezed(w: _Writer, x: str, y: str, rank: int) -> None:
    axes = w.constant(f"{y}_axes", [0])
    for kind in ("Unsqueeze", "Squeeze"):
        for time in ("once", "twice"):
            x = w.node(kind, [x, axes], y if (kind, time) == ("Squeeze", "twice") else f"{y}_{kind}_{time}")


def _in_halves(w: _Writer, x: str, y: str, rank: int) -> None:
    """Compute the same half twice, which is exact in binary floats."""
    half = w.constant(f"{y}_half", 0.5, np.float32)
    w.node("Add", [w.node("Mul", [x, half], f"{y}_{side}") for side in ("left", "right")], y)


def _sliced_twice(w: _Writer, x: str, y: str, rank: int) -> None:
    for axis, name in ((0, f"{y}_once"), (rank - 1, y)):
        bounds = [
            w.constant(f"{name}_{part}", [value]) for part, value in (("from", 0), ("to", 2**31 - 1), ("axes", axis))
        ]
        x = w.node("Slice", [x, *bounds], name)


_DETOURS: tuple[tuple[_Detour, int], ...] = (
    (_identity, 0),
    (_dropout, 0),
    (_cast, 0),
    (_there_and_back, 2),
    (_as_computed, 2),
    (_unsqueezed, 0),
    (_sliced, 1),
    (_padded, 1),
    (_expanded, 1),
    (_times_one, 0),
    (_plus_zero, 0),
    (_twice_reshaped, 1),
    (_not_turned, 2),
    (_alone, 1),
    (_twice_unsqueezed, 0),
    (_in_halves, 0),
    (_sliced_twice, 2),
)
"""Each with the least rank that it needs."""
