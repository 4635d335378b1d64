"""What an original computes, on drawn inputs, in each setting of ONNX Runtime: others are compared with it.

    reference = reference_of(model)                     # drawn inputs, and outputs as written and as deployed
    reference.expected[0]["y"]                          # the yardstick: as written, on the first input

Invariant: the inputs depend on the seed, the sizes and the model's structure alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from rlflow.errors import InputError, RLFlowError
from rlflow.runtime.input_domains import uses_of
from rlflow.runtime.inputs import DEFAULT_DIMENSION, draw_inputs, symbolic_dimensions
from rlflow.runtime.session import SAID, SETTINGS, Session, Setting, open_session, run, structure_of

# Sizes to try for dynamic dimensions without a value, small ones first; a convolution needs large ones.
_FALLBACK_SIZES = (DEFAULT_DIMENSION, 16, 64, 224)
# One draw in so many ignores the ordinary domain of an input, to show faults outside it. Which draw it is depends on
# the seed, so that many seeds of one draw each have it, too.
_DRAWS_PER_STRAY = 3

Inputs = dict[str, np.ndarray]
Outputs = dict[str, Any]


@dataclass(frozen=True)
class Reference:
    """The outputs of an original, by setting and by name for each of the inputs, with which candidates are compared.

    Those of the first setting are the yardstick.
    """

    inputs: list[Inputs]
    outputs: Mapping[Setting, list[Outputs]]

    @property
    def expected(self) -> list[Outputs]:
        return next(iter(self.outputs.values()))


def reference_of(
    original: ModelProto | Path,
    settings: Sequence[Setting] = SETTINGS,
    *,
    draws: int = 3,
    seed: int = 0,
    threads: int = 1,
    dimensions: Mapping[str, int] | None = None,
    inputs: Sequence[Mapping[str, np.ndarray]] | None = None,
) -> Reference:
    """Run a model in each of the settings, one after another, on drawn inputs or on `inputs`. Raises as `compare`."""
    first, *others = settings
    session = open_session(original, first, threads)
    if inputs is None:
        reference = run_original(original, session, first, draws=draws, seed=seed, dimensions=dimensions)
    else:
        given = list(map(dict, inputs))
        reference = Reference(given, {first: outputs_of(session, given)})
    del session  # its memory, before it is opened again
    for setting in others:
        try:
            reference = run_again(open_session(original, setting, threads), setting, reference)
        except RLFlowError as error:
            raise RLFlowError(f"{SAID[setting]}, {error}; it can still be compared {SAID[first]} alone") from error
    return reference


def run_original(
    original: ModelProto | Path,
    session: Session,
    setting: Setting = "as_written",
    *,
    draws: int = 3,
    seed: int = 0,
    dimensions: Mapping[str, int] | None = None,
    drawing_s: float = math.inf,
) -> Reference:
    """Run a model, in a session of it, on drawn inputs, with the first sizes of dynamic dimensions at which it runs.

    When that has taken `drawing_s` seconds, no further input is drawn after the first. Raises as `compare` does.
    """
    end_s = time.perf_counter() + drawing_s
    return _reference_runs(structure_of(original), session, setting, draws, seed, dict(dimensions or {}), end_s)


def run_again(session: Session, setting: Setting, reference: Reference) -> Reference:
    """Add what the original computes in another setting on the same inputs, in a session of it."""
    return replace(reference, outputs={**reference.outputs, setting: outputs_of(session, reference.inputs)})


def drawn_inputs(
    model: ModelProto | Path, *, draws: int = 3, seed: int = 0, dimensions: Mapping[str, int] | None = None
) -> list[Inputs]:
    """Return the inputs on which `compare` runs this original; raises as `compare` does."""
    return reference_of(model, ("as_written",), draws=draws, seed=seed, dimensions=dimensions).inputs


def outputs_of(session: Session, inputs: Sequence[Inputs]) -> list[Outputs]:
    return [run(session, each) for each in inputs]


def _reference_runs(
    structure: ModelProto,
    session: Session,
    setting: Setting,
    draws: int,
    seed: int,
    named: dict[str, int],
    end_s: float,
) -> Reference:
    """Draw inputs and run the original on them, with the first sizes of dynamic dimensions at which it runs.

    After `end_s`, by `time.perf_counter`, nothing is drawn any more but the first.
    """
    if draws < 1:
        raise InputError(f"draws is {draws}; equivalence needs at least 1 drawn input")
    if seed < 0:
        raise InputError(f"the seed is {seed}: give a whole number of 0 or more")
    free = [name for name in symbolic_dimensions(structure) if name not in named]
    distinct = {name: size for size, name in enumerate(free, start=DEFAULT_DIMENSION)}
    attempts = [(distinct, DEFAULT_DIMENSION)] + [(dict.fromkeys(free, size), size) for size in _FALLBACK_SIZES]

    uses = uses_of(structure)
    required = {name: use.required() for name, use in uses.items()}
    by_draw = [required if (seed + number + 1) % _DRAWS_PER_STRAY == 0 else uses for number in range(draws)]

    failure: RLFlowError | None = None
    for sizes, default in attempts:
        rng = np.random.default_rng(seed)
        drawn, outputs = [], []
        try:
            for own in by_draw:
                drawn.append(draw_inputs(structure, rng, named | sizes, default_dimension=default, uses=own))
                outputs.append(run(session, drawn[-1]))
                if time.perf_counter() >= end_s:
                    break
            return Reference(drawn, {setting: outputs})
        except RLFlowError as error:
            failure = failure or error
    advice = f"; give values to its symbolic dimensions {', '.join(free)}" if free else ""
    raise RLFlowError(f"the original model runs on no drawn input{advice}: {failure}") from failure
