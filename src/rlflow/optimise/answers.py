"""Answers of `rlflow optimise`, kept by what was asked: the same model, asked for in the same way, is answered at once.

    question = Question.of(Path("model.onnx"), asked)       what is asked (`asked`)
    answers = Answers(folder)
    answers.keep(question, optimised)
    answers.known(question)                     # the report, and the way to the model that was delivered

A question is the bytes of the model and of all other files that were given, the options, this machine, the code of
RLFlow and the versions of all packages: whatever changes one of them asks another question. An answer holds the report,
the steps, and the delivered model without the weights that the original has as well, so that most answers are small. It
is written again to the byte, or not at all.

An answer is final for budgets up to its own if timing had decided it. Others, and those of shorter budgets, have steps
that the next search begins with knowledge of.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
import shutil
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError
from onnx import ModelProto

from rlflow.atomic_file import written_whole
from rlflow.errors import RLFlowError
from rlflow.onnx_io.data_place import is_outside
from rlflow.onnx_io.external_data import MESSAGE_LIMIT_BYTES
from rlflow.onnx_io.saving import save_model
from rlflow.onnx_io.shared_weights import with_weights_of, without_weights_of
from rlflow.optimise.api import INTERRUPTED_TIMING, NOT_FASTER, SLOWER, Optimised
from rlflow.optimise.asked import Asked
from rlflow.optimise.pipeline import NOTHING_FOUND
from rlflow.optimise.report import OptimisationReport
from rlflow.optimise.runtimes import NO_TIME
from rlflow.optimise.source import Source
from rlflow.runtime.hardware import fingerprint
from rlflow.runtime.session_options import DEFAULTS, SessionOptions, write_beside
from rlflow.trajectory.record import Trajectory

_LOGGER = logging.getLogger(__name__)

_PACKAGE = Path(__file__).parents[1]


@dataclass(frozen=True)
class Question:
    """A model as it was given, and the digest of all that an answer depends on, but for the budget.

    A model beyond protobuf's 2 GB has no digest, which would take long, and no answer of it is kept.
    """

    source: Source
    digest: str | None

    @classmethod
    def of(cls, model: Path | Source, asked: Asked) -> Question:
        """Hash the files of a model, and all that is asked, with the files of it. Errors as `Source.of`."""
        source = Source.of(model)
        assert source.file is not None, "what is in memory has no file to hash"
        given = {field.name: getattr(asked, field.name) for field in fields(asked)}
        files = {name: value for name, value in given.items() if isinstance(value, Path)}
        options = given | dict.fromkeys(files, "a file")
        digest = hashlib.sha256(repr((options, fingerprint(asked.gate.threads).key, _code())).encode())
        read = [source.file, *sorted(source.beside), *_below(files.values())]
        if sum(path.stat().st_size for path in read) > MESSAGE_LIMIT_BYTES:
            return cls(source, None)
        for path in read:
            digest.update(_digest(path))
        return cls(source, digest.hexdigest())


@dataclass(frozen=True)
class Answer:
    """The report of one run of `rlflow optimise`, and the steps of its search.

    It `is_final` if timing had decided it, or there was nothing to time: asked again, no more would be found out.
    """

    report: OptimisationReport
    trajectory: Trajectory
    is_final: bool
    model_digest: str
    kept_at: str

    def covers(self, budget_s: float) -> bool:
        """True if a search of this budget would not find out more."""
        return self.is_final and self.report.budget_s is not None and budget_s <= self.report.budget_s


@dataclass(frozen=True)
class Answers:
    """A folder of answers, one folder each by the question's digest.

    All together have `most_bytes` at most, but for the last: those that were asked for longest ago go first.
    """

    folder: Path
    most_bytes: int = 1 << 30

    def known(self, question: Question) -> Answer | None:
        """The answer that is kept; None if there is none that can be read."""
        if question.digest is None:
            return None
        path = self.folder / question.digest / "answer.pickle"
        try:
            answer = pickle.loads(path.read_bytes())
        except FileNotFoundError:
            return None
        except Exception as error:  # a damaged pickle raises anything
            _LOGGER.warning("the kept answer %s cannot be read (%s): the model is optimised anew", path, error)
            return None
        with suppress(OSError):  # a cache that cannot be written to is read
            path.parent.touch()
        return answer if isinstance(answer, Answer) else None

    def keep(self, question: Question, optimised: Optimised) -> None:
        """Keep an answer, if the model is not too large for it. What cannot be written is not kept."""
        model, given = optimised.model, optimised.source.model
        if question.digest is None or any(map(is_outside, model.graph.initializer)):
            return
        answer = Answer(
            optimised.report,
            optimised.result.trajectory,
            _is_final(optimised),
            _digest_of(model),
            f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        )
        try:
            with written_whole(self.folder / question.digest) as draft:
                draft.mkdir()
                (draft / "answer.pickle").write_bytes(pickle.dumps(answer))
                onnx.save_model(without_weights_of(model, given), str(draft / "model.onnx"))
            self._drop_the_oldest()
        except OSError as error:
            _LOGGER.warning("the answer could not be kept in %s (%s)", self.folder, error)

    def write(self, question: Question, answer: Answer, output: Path) -> bool:
        """Write the model of an answer, as it was delivered; False, and nothing is written, if it is not that any more.

        Errors as `save_model`.
        """
        assert question.digest is not None, "it has an answer"
        source, tried = question.source.reading(answer.report.read), answer.report.session_options
        if answer.report.written == "original" and (tried is None or tried.options == DEFAULTS):
            source.save(output)
            write_beside(output, SessionOptions.of(source.model))
            return True
        try:
            small = onnx.load(str(self.folder / question.digest / "model.onnx"), load_external_data=False)
            model = with_weights_of(small, source.model)
        except (OSError, RLFlowError, DecodeError) as error:
            _LOGGER.warning("the kept model cannot be read (%s): it is optimised anew", error)
            return False
        if _digest_of(model) != answer.model_digest:
            _LOGGER.warning("the kept model is not the one that was delivered: it is optimised anew")
            return False
        save_model(model, output)
        write_beside(output, SessionOptions.of(model))
        return True

    def _drop_the_oldest(self) -> None:
        """Remove the answers that were asked for longest ago, as long as all together take too much room."""
        answers = sorted(self.folder.glob("[0-9a-f]*"), key=lambda path: path.stat().st_mtime)
        sizes = [sum(file.stat().st_size for file in answer.iterdir()) for answer in answers]
        left = sum(sizes)
        for answer, size in zip(answers[:-1], sizes[:-1], strict=True):
            if left > self.most_bytes:
                shutil.rmtree(answer)
                left -= size


def _is_final(optimised: Optimised) -> bool:
    """False where the time was over, or someone interrupted, before it was decided; and where a reproducer was written,
    which lies beside that output.
    """
    tried = (*optimised.report.settings, optimised.report.session_options)
    if any(each.left_because == NO_TIME for each in tried if each is not None):
        return False
    if optimised.report.refusals or any(inside.refusals for inside in optimised.report.subgraphs):
        return False
    if optimised.written == "optimised":
        latencies = [row.latency for row in optimised.report.sizes] or [optimised.latency]
        decisions = [change.verdict.decision for latency in latencies for change in latency.values()]
        return "faster" in decisions and not optimised.reason.endswith(INTERRUPTED_TIMING)
    return optimised.reason.endswith((NOTHING_FOUND, NOT_FASTER, SLOWER))


def _below(paths: Iterable[Path]) -> list[Path]:
    """The files themselves, and all in folders."""
    return [
        file for path in paths for file in ([path] if path.is_file() else sorted(filter(Path.is_file, path.rglob("*"))))
    ]


def _digest(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


def _digest_of(model: ModelProto) -> str:
    return hashlib.sha256(model.SerializeToString(deterministic=True)).hexdigest()


@cache
def _code() -> str:
    """The digest of RLFlow's own files, with its rules, prices and policy, and of the versions of all packages."""
    files = [path for path in _below([_PACKAGE]) if "__pycache__" not in path.parts]
    versions = sorted({path.name for folder in sys.path for path in Path(folder).glob("*.dist-info")})
    return hashlib.sha256(b"".join(map(_digest, files)) + repr(versions).encode()).hexdigest()
