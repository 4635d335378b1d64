"""The backends of the pass-ordering gym, ours and those of other packages, by name."""

from __future__ import annotations

from collections.abc import Callable

from rlflow.passes.backend import PassBackend
from rlflow.plugins import Registry

BACKENDS: Registry[Callable[[], PassBackend]] = Registry(
    noun="pass backend",
    group="rlflow.pass_backends",
    built_in={
        "onnx": "rlflow.passes.onnx.backend:OnnxBackend",
        "onnx-contrib": "rlflow.passes.onnx.backend:OnnxContribBackend",
        "xla": "rlflow.passes.xla.backend:XlaBackend",
        "xla-onnx": "rlflow.passes.xla.onnx_source:XlaOnnxBackend",
    },
)


def backend_of(name: str) -> PassBackend:
    """Make a backend in this process. `InputError` if there is none of that name, or if it cannot work here."""
    return BACKENDS.get(name)()
