"""A runtime of your own: the interpreter that comes with ONNX, node by node in numpy.

Your package announces it, and `rlflow optimise --runtime interpreter` checks and times models there:

    [project.entry-points."rlflow.runtimes"]
    interpreter = "own_runtime:FLOAT32"

One that computes in a second precision announces another `Runtime`, `interpreter_bfloat16`, for `--precision bfloat16`.

In RLFlow itself it is a module in `runtime/`, a line for each precision in `runtime/runtimes.py` and, if it needs a
library, an extra of the library's name in `pyproject.toml`. The tests of all runtimes ask it, too.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto
from onnx.reference import ReferenceEvaluator

from rlflow import zoo
from rlflow.errors import InputError, RLFlowError
from rlflow.runtime.inputs import draw_inputs
from rlflow.runtime.runtimes import YARDSTICK, Precision, open_model


@dataclass(frozen=True)
class Interpreted:
    """A model that is ready to run: an `OpenModel`."""

    evaluator: ReferenceEvaluator

    def run(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return outputs that are the caller's own. Raises `RLFlowError`, whatever goes wrong."""
        try:
            values = self.evaluator.run(None, dict(inputs))
        except Exception as error:
            raise RLFlowError(f"the interpreter could not run the model: {error}") from error
        return {name: np.array(value) for name, value in zip(self.evaluator.output_names, values, strict=True)}

    def repeated(self, inputs: Mapping[str, np.ndarray]) -> Callable[[], Any]:
        """Return a function that is timed: it runs the model and does nothing else."""
        fed = dict(inputs)
        return lambda: self.evaluator.run(None, fed)


@dataclass(frozen=True)
class Interpreter:
    """Opens models: a `Runtime`. Its threads are numpy's own, of which OMP_NUM_THREADS says how many there are."""

    name: str = "ONNX interpreter"
    version: str = version("onnx")
    precision: Precision = "float32"
    said: str = "in the ONNX interpreter"

    def open(self, model: ModelProto | Path, threads: int) -> Interpreted:
        if threads < 1:
            raise InputError(f"threads is {threads}; a model needs at least 1")
        try:
            return Interpreted(ReferenceEvaluator(str(model) if isinstance(model, Path) else model))
        except Exception as error:
            raise RLFlowError(f"the interpreter could not load the model: {error}") from error


FLOAT32 = Interpreter()


if __name__ == "__main__":
    model = zoo.build("tiny_chain")
    inputs = draw_inputs(model, np.random.default_rng(0))
    (expected,) = open_model(model, YARDSTICK).run(inputs).values()
    (found,) = FLOAT32.open(model, threads=1).run(inputs).values()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    print(f"{FLOAT32.name} {FLOAT32.version} computes what ONNX Runtime computes")
