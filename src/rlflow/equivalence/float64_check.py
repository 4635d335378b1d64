"""Two models compared in float64, where float32 cannot tell rounding from a fault.

A badly conditioned model amplifies rounding, so that two models that are equal over the reals may differ in float32 by
more than the tolerance. In float64 the same amplification acts on an epsilon that is 2^29 times smaller, and what
remains of the difference tells rounding from a fault:

- An inconclusive difference is at most INCONCLUSIVE_FACTOR tolerances, so the amplification is at most that: in
  float64, models that are equal over the reals differ by no more than INCONCLUSIVE_FACTOR tolerances of float64.
- A rewrite may store a number that it computed (a product of two weights), which rounds it to its float type. The
  effect is measured: the candidate runs with those numbers that the original does not store nudged by half an epsilon.
  ROUNDINGS times that effect is allowed, since the direction of a rounding is chance.
- The candidate may not pay with accuracy: its error against float64, in an inconclusive output, is at most WORSE_FACTOR
  times the original's own.
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
from rlflow.equivalence.float64 import in_float64, nudged, run_in_float64
from rlflow.equivalence.tolerance import coarsest_epsilon, tolerance_of
from rlflow.errors import RLFlowError
from rlflow.onnx_io.external_data import MESSAGE_LIMIT_BYTES, settled
from rlflow.runtime.session import structure_of, weight_bytes

INCONCLUSIVE_FACTOR = 100
WORSE_FACTOR = 10
ROUNDINGS = 2


@dataclass(frozen=True)
class Float64Check:
    """The verdict of float64 on the worst inconclusive output; all numbers are relative to its largest absolute value.

    `difference` is between both models in float64, and `allowed` the largest that rounding explains there. The errors
    are those of each model as it runs, against the original in float64.
    """

    difference: float
    allowed: float
    original_error: float
    candidate_error: float

    @property
    def confirms(self) -> bool:
        """True if the models are equal over the reals and the candidate is about as accurate as the original."""
        return self.difference <= self.allowed < math.inf and self.candidate_error <= WORSE_FACTOR * self.original_error

    @property
    def further(self) -> str:
        """The side that is further from the float64 reference."""
        return "original" if self.original_error > self.candidate_error else "candidate"

    @property
    def summary(self) -> str:
        """The verdict as a clause for a person."""
        return (
            f"in float64 they differ by {self.difference:.1e}, allowed {self.allowed:.1e}; the {self.further} is "
            f"further from it (original {self.original_error:.1e}, candidate {self.candidate_error:.1e})"
        )


@dataclass(frozen=True)
class FloatRuns:
    """Outputs of both models as they run, by name, for each of the drawn `inputs`."""

    inputs: list[dict[str, np.ndarray]]
    expected: list[dict[str, Any]]
    actual: list[dict[str, Any]]


def check_in_float64(
    original: ModelProto | Path, candidate: ModelProto | Path, runs: FloatRuns, tolerance: float
) -> Float64Check:
    """Check all outputs that differ by more than `tolerance` in float64, and return the least favourable verdict.

    Raises `RLFlowError` if a model cannot be run in float64.
    """
    original, candidate = _loaded(original), _loaded(candidate)
    wide_original, wide_candidate = in_float64(original), in_float64(candidate)
    reference = run_in_float64(wide_original, runs.inputs)
    other = run_in_float64(wide_candidate, runs.inputs)

    # The candidate again, with the numbers that only it stores rounded once more.
    moved = other
    stored_by_both = _stored_numbers(wide_original)
    if _stored_numbers(wide_candidate) - stored_by_both:
        epsilon = coarsest_epsilon(original)
        nudged_candidate = nudged(wide_candidate, stored_by_both, epsilon, np.random.default_rng(0))
        moved = run_in_float64(nudged_candidate, runs.inputs)

    amplified = INCONCLUSIVE_FACTOR * tolerance_of(wide_original)
    checks = []
    for draw in range(len(runs.inputs)):
        difference, rounding = _relative(reference[draw], other[draw]), _relative(other[draw], moved[draw])
        original_error = _relative(reference[draw], runs.expected[draw])
        candidate_error = _relative(reference[draw], runs.actual[draw])
        for output, error in _relative(runs.expected[draw], runs.actual[draw]).items():
            if error > tolerance:
                allowed = max(amplified, ROUNDINGS * rounding[output])
                checks.append(
                    Float64Check(difference[output], allowed, original_error[output], candidate_error[output])
                )
    return max(checks, key=lambda check: (not check.confirms, check.difference))


def _relative(expected: Mapping[str, Any], actual: Mapping[str, Any]) -> dict[str, float]:
    """Return the largest relative difference of each float output, by its label."""
    return {
        output: errors(left, right)[1]
        for output, left, right in paired(expected, actual)
        if left.dtype.kind == "f" and left.shape == right.shape
    }


def _stored_numbers(widened: ModelProto) -> set[bytes]:
    return {tensor.raw_data for tensor in widened.graph.initializer if tensor.data_type == TensorProto.DOUBLE}


def _loaded(model: ModelProto | Path) -> ModelProto:
    if weight_bytes(structure_of(model)) > MESSAGE_LIMIT_BYTES:
        raise RLFlowError("the model is too large for a copy in float64")
    return settled(model) if isinstance(model, ModelProto) else onnx.load(model)
