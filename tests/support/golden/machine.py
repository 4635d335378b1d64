"""The machine on which the section `processor` is compared: its processor and the libraries that compute."""

from importlib.metadata import version

import torch

from rlflow.runtime.hardware import fingerprint

LIBRARIES = (
    "cma",
    "matplotlib",
    "numpy",
    "onnx",
    "onnx-ir",
    "onnxoptimizer",
    "onnxruntime",
    "onnxscript",
    "onnxslim",
    "sb3-contrib",
    "scipy",
    "stable-baselines3",
    "torch",
)


def machine() -> dict[str, str]:
    """Return the processor, the kernels that torch chose for it, and the version of each library."""
    processor = {"processor": fingerprint(threads=1).cpu_model, "kernels": torch.backends.cpu.get_cpu_capability()}
    return processor | {name: version(name) for name in LIBRARIES}
