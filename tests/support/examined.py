"""Models under examination, as finders of the doctor are given them."""

from __future__ import annotations

from pathlib import Path

from onnx import ModelProto

from rlflow.doctor.subject import Subject
from rlflow.onnx_io.external_data import write_mapped
from rlflow.optimise.clock import NO_DEADLINE, Deadline
from rlflow.optimise.gate import GateConfig, judgeable


def subject_of(model: ModelProto, folder: Path, deadline: Deadline = NO_DEADLINE, **config: object) -> Subject:
    """The subject that an examination makes of a model, timed in two rounds."""
    settings = GateConfig(**{"rounds": 2, "draws": 2, "dimensions": {}} | config)  # type: ignore[arg-type]
    file = write_mapped(model, folder / "model.onnx")
    return Subject(model, file, judgeable(file, settings), settings, deadline, threads=2)
