"""A runtime as another package brings it: ONNX Runtime, whose outputs are cut to bfloat16; it counts what it opens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from rlflow.runtime.runtimes import OpenModel, Precision, open_model


@dataclass(frozen=True)
class Cut:
    """An open model with outputs of eight digits."""

    exact: OpenModel

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        return {name: _cut(value) for name, value in self.exact.run(inputs).items()}

    def repeated(self, inputs: Mapping[str, np.ndarray]) -> Callable[[], Any]:
        return self.exact.repeated(inputs)


@dataclass(frozen=True)
class Coarse:
    """The runtime; `opened` are the threads of all models that it has opened."""

    name: str = "Coarse"
    version: str = "1.0"
    precision: Precision = "bfloat16"
    said: str = "in a coarse runtime"
    opened: list[int] = field(default_factory=list)

    def open(self, model: ModelProto | Path, threads: int) -> Cut:
        self.opened.append(threads)
        return Cut(open_model(model, "deployed", threads))


def _cut(value: np.ndarray) -> np.ndarray:
    """Drop the lower half of each float32, as a conversion to bfloat16 does without rounding."""
    if value.dtype != np.float32:
        return value
    return (np.ascontiguousarray(value).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32).reshape(value.shape)


COARSE = Coarse()


def announce(folder: Path, **runtimes: str) -> None:
    """Write the metadata by which pip would announce these runtimes, or else `coarse`, in a folder on the path."""
    metadata = folder / "other_runtimes-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: other-runtimes\nVersion: 1.0\n")
    lines = (f"{name} = {place}" for name, place in (runtimes or {"coarse": "support.coarse_runtime:COARSE"}).items())
    (metadata / "entry_points.txt").write_text("\n".join(["[rlflow.runtimes]", *lines]))
