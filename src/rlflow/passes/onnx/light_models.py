"""Two networks of the onnx package as their exporters wrote them years ago, with weights drawn anew.

The package keeps them light by making every weight of one number as the model runs. With such weights all channels of a
layer are equal, and a model that mixes them up could not be told from a right one, so that they are drawn here. The
last Softmax is left out: of a thousand equal classes it makes a certainty from a rounding error.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, numpy_helper, version_converter

from rlflow.errors import InputError

LIGHT = {"squeezenet": "squeezenet1_1", "shufflenet": "shufflenet"}
"""Names and families. The others have weights of 30 to 500 MB."""
_FOLDER = Path(onnx.__file__).parent / "backend/test/data/light"
_OPSET = 17


def light_model(name: str) -> ModelProto:
    """Return the model of this name, in opset 17. `InputError` if there is none, or if onnx came without it."""
    path = _FOLDER / f"light_{name}.onnx"
    if name not in LIGHT or not path.is_file():
        raise InputError(f"there is no light model {name!r}: choose one of {', '.join(LIGHT)}")
    model = version_converter.convert_version(_without_softmax(onnx.load(path)), _OPSET)
    _draw_weights(model)
    return model


def _without_softmax(model: ModelProto) -> ModelProto:
    last = model.graph.node[-1]
    if last.op_type == "Softmax":
        model.graph.output[0].name = last.input[0]
        del model.graph.node[-1]
    return model


def _draw_weights(model: ModelProto) -> None:
    graph, rng = model.graph, np.random.default_rng(0)
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    made = [node for node in graph.node if node.op_type == "ConstantOfShape"]
    graph.initializer.extend(
        numpy_helper.from_array(_drawn(rng, shapes[node.input[0]]), node.output[0]) for node in made
    )
    for node in made:
        graph.node.remove(node)
    read = {name for node in graph.node for name in node.input}
    for values in (graph.input, graph.initializer):
        for unread in [value for value in values if value.name not in read]:
            values.remove(unread)


def _drawn(rng: np.random.Generator, shape: np.ndarray) -> np.ndarray:
    """Draw filters that keep the size of what they are applied to; what is one number a channel is about 1."""
    values = rng.standard_normal(shape, dtype=np.float32)
    if len(shape) == 1:
        return np.float32(1) + np.abs(values) * np.float32(0.1)
    return values * np.sqrt(np.float32(2) / np.prod(shape[1:], dtype=np.float32))
