"""OpenVINO as one of the runtimes: models compiled for the processor, in float32 unless bfloat16 is asked for.

Left to itself, OpenVINO computes in bfloat16 where the processor has it, at a relative error of about 1e-2; that is
never done without being asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from rlflow.errors import InputError, RLFlowError
from rlflow.extras import needs
from rlflow.onnx_io.external_data import write_mapped
from rlflow.onnx_io.model_file import brief
from rlflow.runtime.runtimes import Precision
from rlflow.runtime.scratch import scratch_folder, without_scratch
from rlflow.runtime.session import structure_of

with needs("openvino", "the runtime openvino"):
    import openvino as ov

_DEVICE = "CPU"
_HINTS: Mapping[Precision, str] = {"float32": "f32", "bfloat16": "bf16"}
_NAMED = "OpenVINO"


@dataclass(frozen=True)
class Compiled:
    """A compiled model as an `OpenModel`: one request, and the names of its outputs as the model has them."""

    request: ov.InferRequest
    outputs: tuple[str, ...]

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        try:
            values = self.request.infer(dict(inputs), share_inputs=True)
        except Exception as error:
            raise RLFlowError(f"{_NAMED} could not run the model: {_reason(error)}") from error
        return {name: values[place] for place, name in enumerate(self.outputs)}

    def repeated(self, inputs: Mapping[str, np.ndarray]) -> Callable[[], Any]:
        fed = dict(inputs)
        return lambda: self.request.infer(fed, share_inputs=True, share_outputs=True)


@dataclass(frozen=True)
class OpenVino:
    """A `Runtime`: models compiled for the processor in a precision."""

    precision: Precision
    said: str
    name: str = _NAMED
    version: str = ov.__version__.partition("-")[0]

    def open(self, model: ModelProto | Path, threads: int) -> Compiled:
        if threads < 1:
            raise InputError(f"threads is {threads}; a model needs at least 1")
        if self.precision == "bfloat16" and "BF16" not in _capabilities():
            raise RLFlowError("this processor does not compute in bfloat16")
        outputs = tuple(output.name for output in structure_of(model).graph.output)
        # Weights in files are mapped into memory, so that the file may go once the model stands.
        with scratch_folder() as folder:
            file = model if isinstance(model, Path) else write_mapped(model, folder / "model.onnx")
            try:
                compiled = _core().compile_model(str(file), _DEVICE, self._options(threads))
            except Exception as error:
                message = f"{_NAMED} {self.version} could not load the model: {_reason(error)}"
                raise RLFlowError(without_scratch(message)) from error
        return Compiled(compiled.create_infer_request(), outputs)

    def _options(self, threads: int) -> dict[str, str | int]:
        return {
            "INFERENCE_PRECISION_HINT": _HINTS[self.precision],
            "INFERENCE_NUM_THREADS": threads,
            "PERFORMANCE_HINT": "LATENCY",
        }


@cache
def _core() -> ov.Core:
    return ov.Core()


@cache
def _capabilities() -> frozenset[str]:
    return frozenset(_core().get_property(_DEVICE, "OPTIMIZATION_CAPABILITIES"))


def _reason(error: Exception) -> str:
    """The last line of an error: those before it say where in OpenVINO it came from."""
    lines = str(error).strip().splitlines()
    return brief(RLFlowError(lines[-1].lstrip("- "))) if lines else type(error).__name__


FLOAT32 = OpenVino("float32", f"in {_NAMED}")
BFLOAT16 = OpenVino("bfloat16", f"in {_NAMED}'s bfloat16")
