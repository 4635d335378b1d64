"""A backend in a process of its own, so that a compiler which crashes or never ends is an answer and not the end.

    with WorkerBackend("xla", Limits(longest_s=60)) as backend:
        backend.apply(program, "algsimp")                     as of the backend itself, or `PassError`

The process stays, and answers one call after another (`rlflow.runtime.isolation`). A call that kills it, or that takes
longer than its limit, raises `PassError`, and the next call starts a new process; programs are bytes in this one, so
nothing is lost with it.

Invariant: a call returns or raises within its limit, and no process outlives the caller.
"""

from __future__ import annotations

import math
import shutil
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

from rlflow.errors import RLFlowError
from rlflow.ir.graph import Graph
from rlflow.passes.backend import Catalogue, PassError, Program, Source
from rlflow.passes.backends import BACKENDS, backend_of
from rlflow.runtime import isolation
from rlflow.runtime.isolation import ProcessDeath, Workers, call_isolated


def _endless() -> float:
    return math.inf


@dataclass(frozen=True)
class Limits:
    """Seconds that a call may take: a pass, and whatever else, such as start-up, a comparison or timing.

    left_s tells how many seconds the caller has left, and is asked again and again: a call ends when there are none.
    """

    longest_pass_s: float = 60.0
    longest_s: float = 600.0
    left_s: Callable[[], float] = _endless


class WorkerBackend:
    """The backend of a name, behind the interface that it has itself (`rlflow.passes.backend.PassBackend`).

    A process is started beforehand, and again by the call after one that ended it (`deaths` counts these).
    `InputError` if there is no such backend.
    """

    def __init__(self, name: str, limits: Limits | None = None) -> None:
        if name not in BACKENDS.names():  # a wrong name is refused here; the right one's libraries are not for here
            BACKENDS.get(name)
        self.name, self.limits = name, limits or Limits()
        self.deaths = 0
        scratch = tempfile.mkdtemp(prefix="rlflow-")  # who is killed cleans nothing up
        self._workers = Workers(environment={"TMPDIR": scratch})
        self._clean_up = weakref.finalize(self, shutil.rmtree, scratch, ignore_errors=True)
        self._catalogue: Catalogue | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process, if there is one."""
        self._workers.close()
        self._clean_up()

    @property
    def process_id(self) -> int | None:
        """The number of the process, if it runs."""
        return next(iter(self._workers.process_ids), None)

    def catalogue(self) -> Catalogue:
        """The passes and pipelines that there are; asked for once."""
        if self._catalogue is None:
            self._catalogue = self._call("catalogue")
        return self._catalogue

    def sources(self) -> tuple[Source, ...]:
        """The programs of the backend's own dataset."""
        return self._call("sources")

    def load(self, source: str | bytes) -> Program:
        """A program of the dataset, of a file, or from its content."""
        return self._call("load", source)

    def apply(self, program: bytes, name: str) -> Program:
        """Run a pass or a pipeline; `PassError` also if that ends the process or takes too long."""
        return self._call("apply", program, name)

    def graph(self, program: bytes) -> Graph:
        """The program as a graph of `rlflow.ir`."""
        return self._call("graph", program)

    def check(self, original: bytes, program: bytes, *, seed: int) -> str:
        """The difference between the outputs of two programs, or ""."""
        return self._call("check", original, program, seed=seed)

    def compiled_operations(self, program: bytes) -> int:
        """Operations that are left when the program is compiled."""
        return self._call("compiled_operations", program)

    def times_ms(self, programs: Sequence[bytes], *, rounds: int, runs: int, seed: int) -> Mapping[int, list[float]]:
        """Milliseconds of each round by the program's place."""
        return self._call("times_ms", list(programs), rounds=rounds, runs=runs, seed=seed)

    def _call(self, call: str, *args: Any, **kwargs: Any) -> Any:
        longest_s = self.limits.longest_pass_s if call == "apply" else self.limits.longest_s
        within = isolation.Limits(longest_s, is_called_off=lambda: self.limits.left_s() <= 0.0, workers=self._workers)
        try:
            return call_isolated(within, _called, self.name, call, args, kwargs)
        except ProcessDeath as death:
            self.deaths += 1
            of = f" of {args[1]!r}" if call == "apply" else ""
            raise PassError(f"{call}{of} by the backend {self.name!r}: {death}; another is started") from None


_backend = cache(backend_of)


def _called(name: str, call: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a method of the backend of a name; runs in the other process.

    Raises errors of ours as they are, and of others the words: those of a compiler cannot always be pickled.
    """
    try:
        return getattr(_backend(name), call)(*args, **kwargs)
    except RLFlowError:
        raise
    except MemoryError:
        raise PassError("it takes more memory than there is") from None
    except Exception as error:
        raise PassError(f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}") from None
