"""A refusal: why a candidate is not delivered, and what it was made by, so that the search can go on without that.

Nothing that only a candidate does is an error of the run: whatever phase it fails in, the next best candidate has its
turn, or the original comes back with the reason. `of_candidate` turns all that may happen to one into `Refused`:

    with of_candidate("timing"):
        time(candidate)                     # it raises whatever it likes

What the user gave, and what it cannot do, is judged before. Only a method that searches may still find it unusable.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rlflow.errors import EquivalenceError, RLFlowError
from rlflow.runtime.scratch import without_scratch

_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True)
class Refusal:
    """The reason why a candidate is not delivered, a clause without its subject, which came out in this phase.

    `differs` says that it computes something else; otherwise it could not be made or run. The first wrong one of the
    steps that lead to it is number `step`, counted from 1, by the rules with the ids `rules`; 0 and none if that is not
    known. `fusions` are optimisers of ONNX Runtime without which it would be right as deployed. What shows the
    difference again was written to the folder `reproducer`, if there is one.
    """

    phase: str
    reason: str
    differs: bool = False
    rules: tuple[str, ...] = ()
    step: int = 0
    fusions: tuple[str, ...] = ()
    reproducer: Path | None = None
    place: str = field(default="", compare=False)

    @property
    def summary(self) -> str:
        """One sentence, loud where a model would have computed something else."""
        begun = f"In {self.place}, a" if self.place else "A"
        what = "computes something else and was refused" if self.differs else "was refused"
        return f"{begun} rewritten model {what}: it {self.reason}."

    def to_json(self) -> dict[str, Any]:
        lists = {"rules": list(self.rules), "fusions": list(self.fusions)}
        folder = None if self.reproducer is None else str(self.reproducer)
        return vars(self) | lists | {"reproducer": folder}


class Refused(EquivalenceError):
    """Raised where a candidate is refused."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(f"the rewritten model {refusal.reason}")
        self.refusal = refusal


@contextmanager
def of_candidate(phase: str, passing: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """Turn everything that a candidate raises into `Refused`, but what is `passing`.

    What is no error of ours, nor of the system, is logged as a fault.
    """
    try:
        yield
    except Exception as error:
        if isinstance(error, (Refused, *passing)):
            raise
        if isinstance(error, (RLFlowError, OSError)):
            raise Refused(_failed(phase, str(error))) from error
        _LOGGER.exception("a fault of RLFlow in %s, which costs nothing but this candidate: please report it", phase)
        raise Refused(_failed(phase, f"{type(error).__name__}: {error}")) from error


def _failed(phase: str, why: str) -> Refusal:
    return Refusal(phase, f"failed in {phase} ({without_scratch(why)})")
