"""An examination: one finder after another looks at a model, each at what those before have left of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from onnx import ModelProto

from rlflow.doctor.finders import FINDERS
from rlflow.doctor.finding import Finding
from rlflow.doctor.subject import NotLookedFor, Subject
from rlflow.method import OnProgress, never
from rlflow.onnx_io import save_model
from rlflow.onnx_io.external_data import write_mapped
from rlflow.optimise.clock import Deadline
from rlflow.optimise.gate import GateConfig, judgeable
from rlflow.optimise.refusal import Refused
from rlflow.optimise.source import Source
from rlflow.runtime.hardware import fingerprint, usable_cores
from rlflow.runtime.inputs import dimensions_of
from rlflow.runtime.isolation import ProcessTimeout, Workers
from rlflow.runtime.scratch import scratch_folder

if TYPE_CHECKING:
    from rlflow.doctor.finders import Finder

DEFAULT_BUDGET_S = 60.0
_JUDGING = 0.3
"""The part of the budget in which the model must have been run."""
_ROUNDS = 12
"""Rounds of one comparison at most: there are many, and what is clear takes two."""
NO_TIME = "the budget was over"


@dataclass(frozen=True)
class Examined:
    """The findings about a model, by the names of their finders, and why others could not look.

    `model` is the model with all remedies, the very one where there are none.
    """

    source: Source
    model: ModelProto
    findings: tuple[tuple[str, Finding], ...]
    not_looked_for: Mapping[str, str]
    config: GateConfig

    @property
    def to_do(self) -> tuple[Finding, ...]:
        """Findings with advice."""
        return tuple(finding for _, finding in self.findings if finding.advice)

    @property
    def hardware(self) -> str:
        """The name of the processor on which everything was timed."""
        return fingerprint(self.config.threads).cpu_model

    def save(self, path: Path | str) -> None:
        """Write the model with all remedies; byte for byte as it came where there are none. Errors as `save_model`."""
        if self.model is self.source.model:
            self.source.save(path)
        else:
            save_model(self.model, path)


def examine(
    model: ModelProto | Path | str,
    *,
    budget_s: float | None = DEFAULT_BUDGET_S,
    shapes: Mapping[str, Sequence[int]] | None = None,
    finders: Sequence[str] | None = None,
    config: GateConfig | None = None,
    on_progress: OnProgress | None = None,
    is_interrupted: Callable[[], bool] = never,
) -> Examined:
    """Let finders look at a model, all of them or those named, within a wall time in seconds; None is no limit.

    `shapes` are those of inputs with dynamic dimensions, by name. `config` says how the model is run and timed. The
    time that one finder leaves over goes on to those after it. Raises `InputError` for what cannot be used.
    """
    deadline = Deadline.after(budget_s, is_interrupted=is_interrupted)
    source, names = Source.of(model), FINDERS.names() if finders is None else list(finders)
    looking = {name: FINDERS.get(name) for name in names}
    sizes = dimensions_of(source.model, shapes or {})
    config = config or GateConfig(rounds=_ROUNDS)
    findings: list[tuple[str, Finding]] = []
    not_looked_for: dict[str, str] = {}
    with Workers("rlflow.optimise.gate") as workers, scratch_folder() as folder:
        config = replace(config, dimensions=sizes, limits=replace(config.limits, workers=workers))
        subject = _subject(source.model, folder, config, deadline)
        for place, (name, finder) in enumerate(looking.items()):
            if on_progress:
                on_progress(place / len(looking), f"looking for {name}")
            own = replace(subject, deadline=deadline.part(1.0 / (len(looking) - place)))
            try:
                found = _found(finder, own)
            except NotLookedFor as reason:
                not_looked_for[name] = str(reason)
                continue
            for finding in found:
                subject, told = _mended(subject, finding)
                findings.append((name, told))
        return Examined(source, subject.model, tuple(findings), not_looked_for, config)


def _found(finder: Finder, subject: Subject) -> list[Finding]:
    """Let a finder look. `NotLookedFor` if there was no time for it."""
    try:
        if not subject.deadline.is_over:
            return list(finder(subject))
    except ProcessTimeout:
        pass
    raise NotLookedFor(NO_TIME)


def _mended(subject: Subject, finding: Finding) -> tuple[Subject, Finding]:
    """The subject with the remedy of a finding; the finding without it where that cannot be shown to be right."""
    if finding.remedy is None:
        return subject, finding
    try:
        return subject.with_model(finding.remedy), finding
    except Refused as refused:
        return subject, replace(finding, remedy=None, found=f"{finding.found}; mended, {refused.refusal.reason}")


def _subject(model: ModelProto, folder: Path, config: GateConfig, deadline: Deadline) -> Subject:
    file = write_mapped(model, folder / "model.onnx")
    judgement = judgeable(file, config, deadline.part(_JUDGING))
    return Subject(model, file, judgement, config, deadline, threads=usable_cores())
