"""Exports as ONNX Runtime's own tools change them: quantised, in half precision, fused."""

import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.transformers.float16 import convert_float_to_float16
from onnxruntime.transformers.optimizer import optimize_model

from rlflow.runtime.inputs import draw_inputs
from support.exports.exporting import Export

_SAMPLES = 4
_HEADS, _WIDTH = 4, 32
"""Of the transformers of `from_transformers`."""


class _Samples(CalibrationDataReader):
    """Drawn inputs, from which ranges of values are read off."""

    def __init__(self, model: onnx.ModelProto, sizes: Mapping[str, int]) -> None:
        draws = [draw_inputs(model, np.random.default_rng(seed), sizes) for seed in range(_SAMPLES)]
        self._samples = iter(draws)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._samples, None)


Convert = Callable[[Export, Path, Path], None]


def _quantised(layout: QuantFormat) -> Convert:
    def convert(export: Export, before: Path, after: Path) -> None:
        quantize_static(before, after, _Samples(export.model, export.sizes), quant_format=layout)

    return convert


def _dynamically(export: Export, before: Path, after: Path) -> None:
    quantize_dynamic(before, after, weight_type=QuantType.QInt8)


def _halved(export: Export, before: Path, after: Path) -> None:
    onnx.save(convert_float_to_float16(export.model), after)


def _fused_as(kind: str) -> Convert:
    def convert(export: Export, before: Path, after: Path) -> None:
        fused = optimize_model(str(before), model_type=kind, num_heads=_HEADS, hidden_size=_WIDTH, opt_level=0)
        fused.save_model_to_file(str(after))

    return convert


CONVERSIONS: Mapping[str, Mapping[str, Sequence[str]]] = {
    "quantised": {
        "qdq": ("unet", "shufflenet", "mlp_mixer", "autoencoder"),
        "qoperator": ("unet", "shufflenet", "mlp_mixer", "autoencoder"),
        "dynamic": ("bert", "gpt2", "lstm", "mlp_mixer"),
    },
    "half_precision": {"half": ("bert", "llama", "unet", "mlp_mixer")},
    "fused": {"bert": ("bert",), "gpt2": ("gpt2",), "bart": ("bart",)},
}
"""Kind -> conversion -> names of architectures."""

_CONVERT: Mapping[str, Convert] = {
    "qdq": _quantised(QuantFormat.QDQ),
    "qoperator": _quantised(QuantFormat.QOperator),
    "dynamic": _dynamically,
    "half": _halved,
    **{kind: _fused_as(kind) for kind in CONVERSIONS["fused"]},
}


def exports(kind: str, originals: Mapping[str, Export]) -> Iterator[Export]:
    """Of these architectures' exports by their names, all that are converted to this kind."""
    for conversion, names in CONVERSIONS[kind].items():
        for name in names:
            yield converted(conversion, originals[name])


def converted(conversion: str, original: Export) -> Export:
    logging.disable(logging.ERROR)
    try:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            before, after = Path(folder, "before.onnx"), Path(folder, "after.onnx")
            onnx.save(original.model, before)
            _CONVERT[conversion](original, before, after)
            return Export(f"{original.name}.{conversion}", onnx.load(after), original.sizes)
    finally:
        logging.disable(logging.NOTSET)
