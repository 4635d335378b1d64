"""Models of the zoo as ONNX Runtime's own tool quantises them: QuantizeLinear and DequantizeLinear around operators."""

import logging
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quant_pre_process, quantize_static

from rlflow.runtime.inputs import draw_inputs

_SAMPLES = 2
ACTIVATIONS = {"uint8": QuantType.QUInt8, "int8": QuantType.QInt8}


class DrawnInputs(CalibrationDataReader):
    """Drawn inputs, from which ranges of values are read off."""

    def __init__(self, model: onnx.ModelProto, samples: int = _SAMPLES) -> None:
        self._samples = iter([draw_inputs(model, np.random.default_rng(seed)) for seed in range(samples)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._samples, None)


def quantised(model: onnx.ModelProto, activations: str) -> onnx.ModelProto:
    """The model with activations of this type, and weights of int8, each by one scale."""
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
        )
        return onnx.load(after)


@contextmanager
def _quietly() -> Iterator[None]:
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)
