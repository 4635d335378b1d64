"""The inputs on which an original is run to be compared."""

from collections.abc import Mapping
from pathlib import Path

from onnx import ModelProto

from rlflow.equivalence.drawing import Inputs
from rlflow.equivalence.reference import reference_of
from rlflow.runtime.runtimes import YARDSTICK


def drawn_inputs(
    model: ModelProto | Path, *, draws: int = 3, seed: int = 0, dimensions: Mapping[str, int] | None = None
) -> list[Inputs]:
    """Return the inputs on which `compare` runs this original; raises as `compare` does."""
    return reference_of(model, (YARDSTICK,), draws=draws, seed=seed, dimensions=dimensions).inputs
