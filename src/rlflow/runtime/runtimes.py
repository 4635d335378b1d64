"""The ways to run a model, by name: ONNX Runtime in its two settings, other runtimes in each of their precisions.

    model = open_model(Path("model.onnx"), "openvino", threads=2)
    model.run({"x": x})["y"]

Whatever is judged, compared or timed as it will run is opened here: a runtime that is added is one for all of these.
What looks into ONNX Runtime, at its fusions, its kernels or its profiles, opens sessions by itself
(`rlflow.runtime.session`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np
from onnx import ModelProto

from rlflow.errors import InputError
from rlflow.extras import MissingExtraError
from rlflow.plugins import Registry, unknown

Precision = Literal["float32", "bfloat16"]
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
YARDSTICK = "as_written"
"""The setting that says what a model computes."""
ONNX_RUNTIME = "onnxruntime"
"""The runtime whose settings bear no name of a runtime."""
AUTO = "auto"
"""No runtime and no precision, but all of them."""
_DEPLOYED = "deployed"


class OpenModel(Protocol):
    """A model that is ready to run."""

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs by name, in the model's order. Raises `RLFlowError` when the runtime stops."""

    def repeated(self, inputs: Mapping[str, np.ndarray]) -> Callable[[], Any]:
        """Return what runs it on these inputs and does nothing else: that is what is timed.

        On one thread, that is the thread that calls, by whose clock it goes (`rlflow.runtime.timing.clock`).
        """


class Runtime(Protocol):
    """A runtime on the processor, in one of its settings and precisions."""

    @property
    def name(self) -> str:
        """The name as its makers write it."""

    @property
    def version(self) -> str: ...

    @property
    def precision(self) -> Precision:
        """The coarsest type in which it computes with floats."""

    @property
    def said(self) -> str:
        """The words for it in a sentence, such as "as deployed"."""

    def open(self, model: ModelProto | Path, threads: int) -> OpenModel:
        """Raises `InputError` for a number of threads below 1, `RLFlowError` for a model that it refuses."""


RUNTIMES: Registry[Runtime] = Registry(
    noun="setting",
    group="rlflow.runtimes",
    built_in={
        YARDSTICK: "rlflow.runtime.onnx_runtime:AS_WRITTEN",
        _DEPLOYED: "rlflow.runtime.onnx_runtime:DEPLOYED",
        "openvino": "rlflow.runtime.openvino_runtime:FLOAT32",
        "openvino_bfloat16": "rlflow.runtime.openvino_runtime:BFLOAT16",
    },
)


def open_model(model: ModelProto | Path, setting: str, threads: int = 1) -> OpenModel:
    """Open a model in a setting, which is never changed. Raises as `Runtime.open`."""
    return RUNTIMES.get(setting).open(model, threads)


def said(setting: str) -> str:
    """Return a setting in a sentence."""
    return RUNTIMES.get(setting).said


def setting_of(runtime: str, precision: Precision) -> str:
    """Return the setting in which a runtime computes in a precision. `InputError` where there is none."""
    runtimes = runtime_names()
    if runtime not in runtimes:
        raise InputError(unknown("runtime", runtime, runtimes))
    exact = _DEPLOYED if runtime == ONNX_RUNTIME else runtime
    setting = exact if precision == "float32" else f"{exact}_{precision}"
    if setting not in RUNTIMES.names():
        raise InputError(f"{runtime} does not compute in {precision}: choose another runtime, or float32")
    return setting


def settings_of(runtime: str) -> list[str]:
    """Return the settings of a runtime, float32 first, but for the yardstick."""
    exact = setting_of(runtime, "float32")
    return [exact, *(name for name in RUNTIMES.names() if name in {f"{exact}_{each}" for each in PRECISIONS})]


def installed_runtimes() -> list[str]:
    """Return the names of the runtimes that can be imported here.

    `MissingExtraError` where ONNX Runtime is the only one: there is nothing to choose from.
    """
    found, missing = [], list[MissingExtraError]()
    for name in runtime_names():
        try:
            RUNTIMES.get(setting_of(name, "float32"))
            found.append(name)
        except MissingExtraError as error:
            missing.append(error)
    if found == [ONNX_RUNTIME] and missing:
        raise missing[0]
    return found


def runtime_names() -> list[str]:
    """Return the names of the runtimes, of which some have several settings."""
    others = (name for name in RUNTIMES.names() if name not in (YARDSTICK, _DEPLOYED))
    return [ONNX_RUNTIME, *(name for name in others if not name.endswith(PRECISIONS))]
