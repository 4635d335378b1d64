"""Models optimised where they lie: one gives way to a faster one, which bears a stamp, or is left to the byte.

    found = improvement(Path("model.onnx"), asked, budget_s=60.0, answers=answers, prices=None)
    found.left_because                          # "" if there is a faster one
    found.save()                                # over model.onnx, whole or not at all

Invariant: what `save` has written has no further improvement, on whatever machine it is asked for, until it is changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto

from rlflow.method import OnProgress
from rlflow.onnx_io import load_model, save_model
from rlflow.optimise import optimise
from rlflow.optimise.answers import Answer, Answers, Question
from rlflow.optimise.asked import Asked
from rlflow.optimise.report import OptimisationReport
from rlflow.optimise.source import Source
from rlflow.optimise.stamp import is_stamped, stamped
from rlflow.runtime.scratch import scratch_folder

STAMPED = "it is what RLFlow made of it"
OUTSIDE = "its weights lie in other files, which other models may read: `rlflow optimise` writes a new model"
PINNED = "the faster one would accept inputs of the given shapes alone: `rlflow optimise` writes it to another file"


@dataclass(frozen=True)
class Improvement:
    """The faster model that was found for the file `path`; None where it is left as it is, `left_because` says why.

    `report` is None where nothing was looked for.
    """

    path: Path
    left_because: str = ""
    report: OptimisationReport | None = None
    model: ModelProto | None = None

    def save(self) -> None:
        """Write the faster model, if there is one, over the file to which the path leads. Errors as `save_model`."""
        if self.model is not None:
            save_model(stamped(self.model), self.path.resolve())


def improvement(
    path: Path,
    asked: Asked,
    *,
    budget_s: float,
    answers: Answers,
    prices: Path | None,
    on_progress: OnProgress | None = None,
) -> Improvement:
    """Look for a model with the same interface that is faster; `answers` are asked first, and keep what is found.

    Raises `InputError` for a file that is no model.
    """
    source = Source.of(path)
    if is_stamped(source.model):
        return Improvement(path, STAMPED)
    if source.beside:
        return Improvement(path, OUTSIDE)
    question = Question.of(source, asked)
    answer = answers.known(question)
    model = None if answer is None or not answer.covers(budget_s) else _kept_model(question, answer, answers)
    if answer is None or model is None:
        optimised = optimise(
            source,
            **asked.arguments(),
            prices=prices,
            budget_s=budget_s,
            on_progress=on_progress,
            known=None if answer is None else answer.trajectory,
        )
        answers.keep(question, optimised)
        report, model = optimised.report, optimised.model
    else:
        report = answer.report
    if report.written == "original":
        return Improvement(path, report.reason, report)
    if report.pinned:
        return Improvement(path, PINNED, report)
    return Improvement(path, "", report, model)


def _kept_model(question: Question, answer: Answer, answers: Answers) -> ModelProto | None:
    """Return the model of an answer; None if it is not what it was any more."""
    with scratch_folder() as folder:
        file = folder / "kept.onnx"
        return load_model(file) if answers.write(question, answer, file) else None
