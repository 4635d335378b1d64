"""The test of a comparison's inputs: of a model's mutants, how many do they tell from it?

    surveyed(model, reference).summary      'the draws told 57 of 58 mutants apart'

A mutant is told apart if one of its outputs differs by more than rounding on one of the inputs. One that does not load
or run says nothing and is not counted. While too few are told apart, inputs are added to the reference.

A large model has a sample of its mutants tried, by the seed, as many as the time allows.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import ModelProto

from rlflow.equivalence.difference import differences
from rlflow.equivalence.drawing import Drawing, Inputs, Outputs, Reference
from rlflow.equivalence.mutation import Fault, faults
from rlflow.equivalence.tolerance import tolerance_of
from rlflow.errors import RLFlowError
from rlflow.onnx_io.data_place import homes_of
from rlflow.onnx_io.external_data import bring, inside_bytes, refer, tensors_of, with_weights_in
from rlflow.runtime.runtimes import YARDSTICK, open_model
from rlflow.runtime.scratch import scratch_folder
from rlflow.runtime.session import structure_of

ENOUGH = 0.95
"""The share of mutants that inputs must tell apart to be trusted with a model."""
_ADDED = (1.0, 1.0, 1.0, 4.0, 4.0, 16.0)
"""How loud the inputs are that are added one by one."""
_HEAVY_BYTES = 2**24


@dataclass(frozen=True)
class Survey:
    """The mutants that ran, how many of them were told apart, and those that were not, as texts."""

    mutants: int
    killed: int
    survivors: tuple[str, ...] = ()

    @property
    def suffices(self) -> bool:
        """True if inputs that tell these apart would tell a wrong model, or if there was nothing to try."""
        return self.killed >= ENOUGH * self.mutants

    @property
    def blind(self) -> bool:
        """True if there are mutants, and none was told apart."""
        return self.mutants > 0 and not self.killed

    @property
    def summary(self) -> str:
        """The survey as a clause for a person; below `ENOUGH` it names what was not looked at."""
        told = f"the draws told {self.killed} of {self.mutants} mutants apart"
        return told if self.suffices else f"{told}; nobody looked at {'; '.join(self.survivors)}"


def surveyed(
    model: ModelProto | Path,
    reference: Reference,
    *,
    seed: int = 0,
    most: int = 64,
    longest_s: float = 30.0,
) -> Survey:
    """Try up to `most` mutants on the inputs of a reference, for about so many seconds; inputs are added to it.

    Raises `RLFlowError` for a model that does not run.
    """
    end_s = time.perf_counter() + longest_s
    with scratch_folder() as folder:
        base = _light(model, folder)
        tried = _sample(faults(base), most, seed)
        verdicts = {fault: _told(base, fault, reference.runs, end_s) for fault in tried}
        alive = [fault for fault, told in verdicts.items() if told is False]
        killed = sum(told is True for told in verdicts.values())

        session = open_model(base, YARDSTICK)
        for loudness in _ADDED if reference.sizes else ():
            if killed >= ENOUGH * (killed + len(alive)) or time.perf_counter() >= end_s:
                break
            Drawing(base, seed).add(reference, session, len(reference.inputs), loudness)
            alive = [fault for fault in alive if not _told(base, fault, reference.runs[-1:], end_s)]
            killed = sum(told is not None for told in verdicts.values()) - len(alive)
    return Survey(killed + len(alive), killed, tuple(map(str, alive)))


def _told(model: ModelProto, fault: Fault, runs: Sequence[tuple[Inputs, Outputs]], end_s: float) -> bool | None:
    """Return True if one of these runs tells a mutant from the model, None if it does not run, or not in time."""
    if time.perf_counter() >= end_s:
        return None
    tolerance = tolerance_of(model)
    try:
        session = open_model(fault.planted_in(model), YARDSTICK)
        return any(
            difference.problem
            for inputs, expected in runs
            for difference in differences(expected, session.run(inputs), tolerance)
        )
    except RLFlowError:
        return None


def _sample(every: list[Fault], most: int, seed: int) -> list[Fault]:
    """Choose so many by chance, in their order."""
    chosen = np.random.default_rng(seed).permutation(len(every))[:most]
    return [every[k] for k in sorted(chosen)]


def _light(model: ModelProto | Path, folder: Path) -> ModelProto:
    """The model with large weights in files, which its mutants share: in that folder, if it held them itself."""
    base = structure_of(model)
    if isinstance(model, Path):
        bring(base, homes_of(model))
    if inside_bytes(base) < _HEAVY_BYTES:
        return base
    slim = with_weights_in(base, folder / "weights")
    for tensor in tensors_of(slim):
        refer(tensor, [folder])
    return slim
