"""The comparison of two models in an isolated process, which either of them may crash."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from rlflow.equivalence.compare import compare
from rlflow.equivalence.reference import reference_of
from rlflow.equivalence.report import EquivalenceReport, not_equivalent
from rlflow.equivalence.survey import surveyed
from rlflow.equivalence.tolerance import draws_at_random
from rlflow.errors import InputError, RLFlowError
from rlflow.onnx_io import load_model
from rlflow.onnx_io.external_data import outside_bytes
from rlflow.runtime.inputs import dimensions_of
from rlflow.runtime.isolation import Limits, ProcessDeath, call_isolated
from rlflow.runtime.session import Setting, structure_of

_LOG = logging.getLogger(__name__)


def compare_isolated(
    original: ModelProto | Path | str,
    candidate: ModelProto | Path | str,
    *,
    draws: int,
    seed: int,
    setting: Setting | None,
    shapes: Mapping[str, Sequence[int]],
    dimensions: Mapping[str, int],
    inputs: Sequence[Mapping[str, np.ndarray]] | None,
    limits: Limits | None,
    mutants: int,
    finite: bool,
) -> EquivalenceReport:
    """Compare two models as `rlflow.equivalence.equivalence` says."""
    sides = [_readable(model) for model in (original, candidate)]
    structure = structure_of(sides[0])
    if draws_at_random(structure):
        raise InputError("the original draws random numbers: no other model could be compared with it")
    settings: dict[str, Any] = {
        "draws": draws,
        "seed": seed,
        "setting": setting,
        "dimensions": dimensions_of(structure, shapes) | dict(dimensions),
        "inputs": inputs,
        "exceptional": not finite,
    }

    def compared(candidate: ModelProto | Path) -> EquivalenceReport:
        return call_isolated(limits or Limits(), compare, sides[0], candidate, **settings)

    try:
        try:
            report = compared(sides[1])
        except ProcessDeath as death:
            compared(sides[0])  # the original against itself: if that survives, the candidate is to blame
            return not_equivalent(f"the candidate could not be tried here: {death}", structure, draws, is_run=False)
    except InputError:
        raise
    except RLFlowError as error:
        raise InputError(f"the original could not be tried here: {error}") from None
    if not (report.equivalent and report.could_tell and mutants):
        return report
    try:
        return call_isolated(limits or Limits(), _put_to_the_test, report, sides[0], sides[1], mutants, **settings)
    except ProcessDeath as death:  # of a mutant: the models themselves have come through
        _LOG.warning("it could not be tried which mutants the draws tell apart: %s", death)
        return report


def _put_to_the_test(
    report: EquivalenceReport, original: ModelProto | Path, candidate: ModelProto | Path, mutants: int, **settings: Any
) -> EquivalenceReport:
    """Add to a report which mutants its inputs tell apart; where more inputs are drawn for that, make it anew."""
    drawn = {name: settings[name] for name in ("draws", "seed", "dimensions", "inputs", "exceptional")}
    reference = reference_of(original, ("as_written",), **drawn)
    before = len(reference.inputs)
    survey = surveyed(original, reference, seed=settings["seed"], most=mutants)
    if len(reference.inputs) > before:
        report = compare(original, candidate, **settings | {"inputs": reference.inputs})
    return replace(report, survey=survey)


def _readable(model: ModelProto | Path | str) -> ModelProto | Path:
    """Return a model that ONNX Runtime can open: it would follow other links to weights in files than `load_model`."""
    if isinstance(model, ModelProto):
        return model
    loaded = load_model(model)
    return loaded if outside_bytes(loaded) else Path(model)
