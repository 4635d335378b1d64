"""The outputs of an original on drawn inputs, in each setting: others are compared with them.

    reference = reference_of(model)                     # drawn inputs, and outputs as written and as deployed
    reference.outputs[0]["y"]                           # the yardstick: as written, on the first input

Invariant: the inputs depend on the seed, the sizes and the model's structure alone.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from onnx import ModelProto

from rlflow.equivalence.drawing import Drawing, Inputs, Outputs, Reference
from rlflow.errors import RLFlowError
from rlflow.runtime.runtimes import YARDSTICK, OpenModel, open_model, said
from rlflow.runtime.session import SETTINGS, structure_of


def reference_of(
    original: ModelProto | Path,
    settings: Sequence[str] = SETTINGS,
    *,
    draws: int = 3,
    seed: int = 0,
    threads: int = 1,
    dimensions: Mapping[str, int] | None = None,
    inputs: Sequence[Mapping[str, np.ndarray]] | None = None,
    exceptional: bool = False,
) -> Reference:
    """Run a model in each of the settings, one after another, on drawn inputs or on `inputs`. Raises as `compare`."""
    first, *others = settings
    session = open_model(original, first, threads)
    if inputs is None:
        reference = run_original(
            original, session, first, draws=draws, seed=seed, dimensions=dimensions, exceptional=exceptional
        )
    else:
        given = list(map(dict, inputs))
        reference = Reference(given, outputs_of(session, given), first)
    del session  # its memory, before it is opened again
    for setting in others:
        try:
            reference = run_again(open_model(original, setting, threads), setting, reference)
        except RLFlowError as error:
            raise RLFlowError(f"{said(setting)}, {error}; it can still be compared {said(first)} alone") from error
    return reference


def run_original(
    original: ModelProto | Path,
    session: OpenModel,
    setting: str = YARDSTICK,
    *,
    draws: int = 3,
    seed: int = 0,
    dimensions: Mapping[str, int] | None = None,
    drawing_s: float = math.inf,
    exceptional: bool = False,
) -> Reference:
    """Run a model, in a session of it, on drawn inputs, with the first sizes of dynamic dimensions at which it runs.

    If `exceptional`, inputs with NaN and with infinities follow, where these say something of the model. When that has
    taken `drawing_s` seconds, no further input is drawn after the first. Raises as `compare` does.
    """
    end_s, drawing = time.perf_counter() + drawing_s, Drawing(structure_of(original), seed)
    reference = drawing.runs(session, draws, dimensions or {}, end_s, exceptional=exceptional)
    return replace(reference, setting=setting)


def run_again(session: OpenModel, setting: str, reference: Reference) -> Reference:
    """Add what the original computes in another setting on the same inputs, in a session of it."""
    return replace(reference, others={**reference.others, setting: outputs_of(session, reference.inputs)})


def outputs_of(session: OpenModel, inputs: Sequence[Inputs]) -> list[Outputs]:
    return [session.run(each) for each in inputs]
