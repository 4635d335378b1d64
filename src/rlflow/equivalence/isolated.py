"""The comparison of two models in an isolated process, which either of them may crash."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from onnx import ModelProto

from rlflow.equivalence.compare import EquivalenceReport, compare, not_equivalent
from rlflow.equivalence.tolerance import draws_at_random
from rlflow.errors import InputError, RLFlowError
from rlflow.onnx_io import load_model
from rlflow.onnx_io.external_data import outside_bytes
from rlflow.runtime.inputs import dimensions_of
from rlflow.runtime.isolation import Limits, ProcessDeath, call_isolated
from rlflow.runtime.session import Setting, structure_of


def compare_isolated(
    original: ModelProto | Path | str,
    candidate: ModelProto | Path | str,
    *,
    draws: int,
    seed: int,
    setting: Setting,
    shapes: Mapping[str, Sequence[int]],
    dimensions: Mapping[str, int],
    inputs: Sequence[Mapping[str, np.ndarray]] | None,
    limits: Limits | None,
) -> EquivalenceReport:
    """Compare two models as `rlflow.equivalence.equivalence` says."""
    sides = [_readable(model) for model in (original, candidate)]
    structure = structure_of(sides[0])
    if draws_at_random(structure):
        raise InputError("the original draws random numbers: no other model could be compared with it")
    sizes = dimensions_of(structure, shapes) | dict(dimensions)
    compare_here = partial(compare, draws=draws, seed=seed, setting=setting, dimensions=sizes, inputs=inputs)

    def compared(candidate: ModelProto | Path) -> EquivalenceReport:
        return call_isolated(limits or Limits(), compare_here, sides[0], candidate)

    try:
        try:
            return compared(sides[1])
        except ProcessDeath as death:
            compared(sides[0])  # the original against itself: if that survives, the candidate is to blame
            return not_equivalent(f"the candidate could not be tried here: {death}", structure, draws)
    except InputError:
        raise
    except RLFlowError as error:
        raise InputError(f"the original could not be tried here: {error}") from None


def _readable(model: ModelProto | Path | str) -> ModelProto | Path:
    """Return a model that ONNX Runtime can open: it would follow other links to weights in files than `load_model`."""
    if isinstance(model, ModelProto):
        return model
    loaded = load_model(model)
    return loaded if outside_bytes(loaded) else Path(model)
