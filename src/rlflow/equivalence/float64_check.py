"""Which of two models is wrong where float32 cannot tell: both are run in float64.

A badly conditioned model amplifies rounding, so that two models that are equal over the reals may differ in float32 by
more than the tolerance. In float64 the same amplification acts on an epsilon that is 2^29 times smaller, and what
remains of the difference tells rounding from a fault:

- A difference in doubt is at most DOUBT_FACTOR tolerances, so the amplification is at most that; in float64 models that
  are equal over the reals differ by no more than DOUBT_FACTOR tolerances of float64.
- A rewrite may store a number that it computed (a product of two weights), which rounds it to its float type. What this
  may do is measured: the candidate with those numbers that the original does not store nudged by half an epsilon.
  ROUNDINGS times that is allowed, since which way a number is rounded is chance.
- The candidate may not pay with accuracy: of what is in doubt, its error against float64 is at most WORSE_FACTOR times
  the original's own.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, TensorProto

from rlflow.equivalence.difference import errors, paired
from rlflow.equivalence.float64 import in_double, nudged, run_in_double
from rlflow.equivalence.tolerance import coarsest_epsilon, tolerance_of
from rlflow.errors import RLFlowError
from rlflow.onnx_io.external_data import MESSAGE_LIMIT_BYTES
from rlflow.runtime.session import structure_of, weight_bytes

DOUBT_FACTOR = 100
WORSE_FACTOR = 10
ROUNDINGS = 2


@dataclass(frozen=True)
class DoubleReference:
    """What float64 says of the output most in doubt; all relative to that output's largest absolute value.

    `difference` is between both models in float64 and `allowed` the largest that means nothing; the errors are of each
    model as it runs, against the original in float64.
    """

    difference: float
    allowed: float
    original_error: float
    candidate_error: float

    @property
    def settles(self) -> bool:
        """Whether the models are equal over the reals and the candidate about as accurate."""
        return self.difference <= self.allowed < math.inf and self.candidate_error <= WORSE_FACTOR * self.original_error

    @property
    def further(self) -> str:
        """The side that is further from the float64 reference."""
        return "original" if self.original_error > self.candidate_error else "candidate"

    @property
    def summary(self) -> str:
        return (
            f"in float64 they differ by {self.difference:.1e}, allowed {self.allowed:.1e}; the {self.further} is "
            f"further from it (original {self.original_error:.1e}, candidate {self.candidate_error:.1e})"
        )


@dataclass(frozen=True)
class FloatRuns:
    """Both models as they run: outputs by name for each of the inputs drawn."""

    inputs: list[dict[str, np.ndarray]]
    expected: list[dict[str, Any]]
    actual: list[dict[str, Any]]


def settled_in_double(
    original: ModelProto | Path, candidate: ModelProto | Path, runs: FloatRuns, tolerance: float
) -> DoubleReference:
    """What decides of the outputs that differ by more than `tolerance`: the least favourable of them.

    Raises RLFlowError where a model cannot be run in float64.
    """
    sides = [_loaded(model) for model in (original, candidate)]
    wide = [in_double(side) for side in sides]
    reference, other = (run_in_double(side, runs.inputs) for side in wide)
    moved = other
    if _stored_numbers(wide[1]) - (old := _stored_numbers(wide[0])):
        moved = run_in_double(nudged(wide[1], old, coarsest_epsilon(sides[0]), np.random.default_rng(0)), runs.inputs)
    allowed = DOUBT_FACTOR * tolerance_of(wide[0])
    found = [
        DoubleReference(
            difference=_relative(reference[draw], other[draw])[output],
            allowed=max(allowed, ROUNDINGS * _relative(other[draw], moved[draw])[output]),
            original_error=_relative(reference[draw], runs.expected[draw])[output],
            candidate_error=_relative(reference[draw], runs.actual[draw])[output],
        )
        for draw in range(len(runs.inputs))
        for output, error in _relative(runs.expected[draw], runs.actual[draw]).items()
        if error > tolerance
    ]
    return max(found, key=lambda reference: (not reference.settles, reference.difference))


def _relative(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> dict[str, float]:
    """Largest relative difference of each float output."""
    return {
        output: errors(left, right)[1]
        for output, left, right in paired(expected, actual)
        if left.dtype.kind == "f" and left.shape == right.shape
    }


def _stored_numbers(double: ModelProto) -> set[bytes]:
    return {tensor.raw_data for tensor in double.graph.initializer if tensor.data_type == TensorProto.DOUBLE}


def _loaded(model: ModelProto | Path) -> ModelProto:
    if weight_bytes(structure_of(model)) > MESSAGE_LIMIT_BYTES:
        raise RLFlowError("too large for a copy in float64")
    return model if isinstance(model, ModelProto) else onnx.load(model)
