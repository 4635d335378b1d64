"""The originals in PyTorch beside ONNX Runtime: the framework baseline of the papers' speed-ups.

    rows = FrameworksCell(subject, seed=0, timing=TimingConfig(), draws=3).run()
    rows["pytorch"].figures["latency_ratio_deployed"]       below 1: PyTorch takes longer than ONNX Runtime

Before anything is timed, PyTorch has computed what ONNX Runtime computes. Both are opened anew in each round and take
turns, and each setting of ONNX Runtime is timed twice, as control. It runs alone on the machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from experiment.comparison import ORIGINAL

from rlflow.equivalence.difference import differences
from rlflow.equivalence.drawing import Inputs, Reference
from rlflow.equivalence.reference import reference_of
from rlflow.equivalence.tolerance import tolerance_of
from rlflow.errors import EquivalenceError
from rlflow.nn.translated import TorchModel, threads, translated
from rlflow.runtime.inputs import required_inputs
from rlflow.runtime.session import SETTINGS, structure_of
from rlflow.runtime.timing.latency import Opener, alternating, session_opener, times_of
from rlflow.runtime.timing.statistics import ratio
from studies.paper.rows import Row, latency_figures
from studies.reward_study.cases import TimingConfig
from studies.subject import Subject

PYTORCH = "pytorch"


@dataclass(frozen=True)
class FrameworksCell:
    """One graph in both. draws: inputs on which their outputs are compared; the first of them is timed."""

    subject: Subject
    seed: int
    timing: TimingConfig
    draws: int

    def run(self) -> dict[str, Row]:
        """Raises EquivalenceError if PyTorch computes something else than ONNX Runtime."""
        model, timing = self.subject.model, self.timing
        reference = reference_of(model, ("as_written",), draws=self.draws, seed=self.seed)
        inputs = reference.inputs[0]
        openers: dict[str, Opener] = {PYTORCH: lambda: _opened(in_pytorch(model), inputs)}
        for setting in SETTINGS:
            openers |= dict.fromkeys((setting, _again(setting)), session_opener(model, setting, timing.threads, inputs))

        with threads(timing.threads):
            check(in_pytorch(model), reference, tolerance_of(structure_of(model)))
            rng = np.random.default_rng(self.seed)
            rounds = alternating(openers, rng, runs_per_round=timing.runs_per_round, threads=timing.threads)
            times_ms = times_of(islice(rounds, timing.rounds))
        return {ORIGINAL: Row(_figures(times_ms, _again)), PYTORCH: Row(_figures(times_ms, lambda _: PYTORCH))}


def in_pytorch(model: Path) -> TorchModel:
    """Translate a model from its file."""
    structure = structure_of(model)
    inputs = [value.name for value in required_inputs(structure)]
    return translated(model, inputs, [value.name for value in structure.graph.output])


def check(model: TorchModel, reference: Reference, tolerance: float) -> None:
    """Raise EquivalenceError where the outputs are not those of the reference, within a relative tolerance."""
    for inputs, expected in zip(reference.inputs, reference.outputs, strict=True):
        for difference in differences(expected, model(inputs), tolerance):
            if difference.problem:
                raise EquivalenceError(f"PyTorch and ONNX Runtime disagree: {difference.problem}")


def _opened(model: TorchModel, inputs: Inputs) -> Callable[[], Any]:
    model(inputs)
    return lambda: model(inputs)


def _again(setting: str) -> str:
    return f"{setting} again"


def _figures(times_ms: Mapping[str, np.ndarray], other: Callable[[str], str]) -> dict[str, float]:
    """The latency of each setting of ONNX Runtime over that of the other, and the other's own."""
    figures: dict[str, float] = {}
    for setting in SETTINGS:
        other_ms = times_ms[other(setting)]
        figures |= latency_figures(setting, ratio(times_ms[setting], other_ms), other_ms)
    return figures
