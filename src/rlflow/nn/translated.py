"""ONNX models as PyTorch runs them, operator by operator: the framework beside which ONNX Runtime stands.

    model = translated(Path("model.onnx"), inputs=["x"], outputs=["y"])
    with threads(1):
        model({"x": x})["y"]

The translation is onnx2torch's; its weights are those of the model.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import torch

from rlflow.extras import require


@dataclass(frozen=True)
class TorchModel:
    """A model with the names of what goes in and comes out, in the order in which the module has them."""

    module: torch.nn.Module
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs by name."""
        with torch.inference_mode():
            found = self.module(*(torch.from_numpy(inputs[name]) for name in self.inputs))
        tensors = found if isinstance(found, (list, tuple)) else [found]
        return {name: tensor.numpy() for name, tensor in zip(self.outputs, tensors, strict=True)}


def translated(model: Path, inputs: Sequence[str], outputs: Sequence[str]) -> TorchModel:
    """Translate a model, of which the inputs and outputs are named; `MissingExtraError` without onnx2torch."""
    require("frameworks", "PyTorch as a baseline")
    with _torchvision():
        import onnx2torch
    return TorchModel(onnx2torch.convert(model).eval(), tuple(inputs), tuple(outputs))


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Let PyTorch have that many threads, and then as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _torchvision() -> Iterator[None]:
    """Put something in the place of torchvision where it cannot be imported.

    onnx2torch imports it for NonMaxSuppression and RoiAlign alone, and its wheels fail beside a PyTorch that was built
    for another device.
    """
    try:
        importlib.import_module("torchvision")
    except (ImportError, RuntimeError):
        whole, operators = ModuleType("torchvision"), ModuleType("torchvision.ops")
        operators.roi_align = None  # type: ignore[attr-defined]
        places = {"torchvision": whole, "torchvision.ops": operators}
        sys.modules.update(places)
        try:
            yield
        finally:
            for name in places:
                del sys.modules[name]
    else:
        yield
