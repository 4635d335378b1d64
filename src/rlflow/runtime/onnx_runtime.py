"""ONNX Runtime as one of the runtimes: a session in each of its two settings.

As deployed, a model runs with the session options that it carries.
"""

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
from rlflow.runtime.session_options import DEFAULTS, SessionOptions


@dataclass(frozen=True)
class OpenSession:
    """A session as an `OpenModel`."""

    session: ort.InferenceSession

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return run(self.session, inputs)

    def repeated(self, inputs: Mapping[str, np.ndarray]) -> Callable[[], Any]:
        fed = dict(inputs)
        return lambda: self.session.run(None, fed)


def open_with(options: SessionOptions, model: ModelProto | Path, threads: int) -> OpenSession:
    """Open a model as deployed, with options, and as many threads where these do not say how many. Raises as
    `open_session`.
    """
    is_optimised = options.graph_optimization_level == DEFAULTS.graph_optimization_level
    return OpenSession(
        open_session(
            model,
            "deployed" if is_optimised else "as_written",
            options.intra_op_num_threads or threads,
            switched_off=options.disabled_optimizers,
        )
    )


@dataclass(frozen=True)
class OnnxRuntime:
    """A `Runtime`: sessions in a setting."""

    setting: Setting
    said: str
    name: str = "ONNX Runtime"
    version: str = ort.__version__
    precision: Precision = "float32"

    def open(self, model: ModelProto | Path, threads: int) -> OpenSession:
        if self.setting == "as_written":
            return OpenSession(open_session(model, self.setting, threads))
        return open_with(SessionOptions.of(model), model, threads)


AS_WRITTEN = OnnxRuntime("as_written", "as written")
DEPLOYED = OnnxRuntime("deployed", "as deployed")
