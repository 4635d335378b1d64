"""ONNX Runtime as one of the runtimes: a session in each of its two settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import ModelProto

from rlflow.runtime.runtimes import Precision
from rlflow.runtime.session import Setting, open_session, run


@dataclass(frozen=True)
class OpenSession:
    """A session as an `OpenModel`."""

    session: ort.InferenceSession

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return run(self.session, inputs)

    def repeated(self, inputs: Mapping[str, np.ndarray]) -> Callable[[], Any]:
        fed = dict(inputs)
        return lambda: self.session.run(None, fed)


@dataclass(frozen=True)
class OnnxRuntime:
    """A `Runtime`: sessions in a setting."""

    setting: Setting
    said: str
    name: str = "ONNX Runtime"
    version: str = ort.__version__
    precision: Precision = "float32"

    def open(self, model: ModelProto | Path, threads: int) -> OpenSession:
        return OpenSession(open_session(model, self.setting, threads))


AS_WRITTEN = OnnxRuntime("as_written", "as written")
DEPLOYED = OnnxRuntime("deployed", "as deployed")
