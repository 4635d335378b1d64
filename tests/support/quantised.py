"""Models of the zoo as ONNX Runtime's own tool quantises them: QuantizeLinear and DequantizeLinear around operators."""

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quant_pre_process, quantize_static

from rlflow import zoo
from rlflow.runtime.inputs import draw_inputs

_SAMPLES = 2
_TRANSFORMER: dict[str, Any] = {
    "layers": 2,
    "hidden": 32,
    "heads": 2,
    "intermediate": 64,
    "sequence": 16,
    "vocabulary": 50,
}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("bert", _TRANSFORMER | {"head": "cls"}),
    "gpt2": ("gpt2", _TRANSFORMER | {"head": "last"}),
    "resnet": ("resnet18", {"width": 8, "image": 32, "classes": 4}),
}
ACTIVATIONS = {"uint8": QuantType.QUInt8, "int8": QuantType.QInt8}


class DrawnInputs(CalibrationDataReader):
    """Drawn inputs, from which ranges of values are read off."""

    def __init__(self, model: onnx.ModelProto, samples: int = _SAMPLES) -> None:
        self._samples = iter([draw_inputs(model, np.random.default_rng(seed)) for seed in range(samples)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._samples, None)


def quantised(model: onnx.ModelProto, activations: str, per_channel: bool = False) -> onnx.ModelProto:
    """The model with activations of this type, by one scale, and weights of int8, by one or by one for each channel."""
    with _quietly(), tempfile.TemporaryDirectory() as folder:
        before, ready, after = (Path(folder, f"{name}.onnx") for name in ("before", "ready", "after"))
        onnx.save(model, before)
        quant_pre_process(before, ready, skip_symbolic_shape=True)
        quantize_static(
            ready,
            after,
            DrawnInputs(model),
            quant_format=QuantFormat.QDQ,
            activation_type=ACTIVATIONS[activations],
            weight_type=QuantType.QInt8,
            per_channel=per_channel,
        )
        return onnx.load(after)


@cache
def model_of(name: str, activations: str, per_channel: bool = False) -> onnx.ModelProto:
    """A model of `MODELS` so quantised."""
    builder, sizes = MODELS[name]
    return quantised(zoo.build(builder, **sizes), activations, per_channel)


@contextmanager
def _quietly() -> Iterator[None]:
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
