"""A backend in a process of its own, so that a compiler which crashes or never ends is an answer and not the end.

    with WorkerBackend("xla", Limits(longest_s=60)) as backend:
        backend.apply(program, "algsimp")                     as of the backend itself, or `PassError`

The process stays, and answers one call after another over a pair of pipes. A call that kills it, or that takes longer
than its limit, raises `PassError`, and the next call starts a new process; programs are bytes in this one, so nothing
is lost with it.

Invariant: a call returns or raises within its limit, and no process outlives the caller.
"""

from __future__ import annotations

import contextlib
import math
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rlflow.errors import RLFlowError
from rlflow.ir.graph import Graph
from rlflow.passes.backend import Catalogue, PassError, Program, Source
from rlflow.passes.backends import BACKENDS, backend_of
from rlflow.runtime.isolation import end_with

_SERVE = "import sys; from rlflow.passes.worker import serve; serve(*sys.argv[1:])"
_FIRST_TO_BE_KILLED = "1000"


_POLL_S = 0.05


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

    A process is started by the first call, and again by the call after one that ended it (`deaths` counts these).
    `InputError` if there is no such backend.
    """

    def __init__(self, name: str, limits: Limits | None = None) -> None:
        if name not in BACKENDS.names():  # a wrong name is refused here; the right one's libraries are not for here
            BACKENDS.get(name)
        self.name, self.limits = name, limits or Limits()
        self.deaths = 0
        self._process: _Process | None = None
        self._catalogue: Catalogue | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.end()
            self._process = None

    @property
    def process_id(self) -> int | None:
        """The number of the process, if it runs."""
        return self._process.popen.pid if self._process is not None else None

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
        if self._process is None:
            self._process = _Process(self.name)
            weakref.finalize(self, self._process.end)  # for who forgets to close
        try:
            succeeded, value = self._process.answer(longest_s, self.limits.left_s, (call, args, kwargs))
        except _Ended as ended:
            self.close()
            self.deaths += 1
            of = f" of {args[1]!r}" if call == "apply" else ""
            raise PassError(f"{call}{of} by the backend {self.name!r} {ended}; its process is started anew") from None
        except BaseException:  # an interrupt: the answer that is due must not be taken for that of the next call
            self.close()
            raise
        if not succeeded:
            raise value
        return value


class _Ended(RLFlowError):
    """The process gave no answer."""


class _Process:
    """A process that serves one backend, and the two pipes to it."""

    def __init__(self, name: str) -> None:
        (calls, self._calls), (self._answers, answers) = os.pipe(), os.pipe()
        command = [sys.executable, "-P", "-c", _SERVE, name, str(calls), str(answers), str(os.getpid())]
        self._scratch = tempfile.mkdtemp(prefix="rlflow-")  # a process that is killed cleans nothing up
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "TMPDIR": self._scratch}
        try:
            self.popen = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # compilers report to both, in no words for a person
                stderr=subprocess.DEVNULL,
                pass_fds=(calls, answers),
                start_new_session=True,
            )
        finally:
            os.close(calls)
            os.close(answers)
        self._out, self._in = Connection(self._calls, readable=False), Connection(self._answers, writable=False)

    def answer(
        self, longest_s: float, left_s: Callable[[], float], call: tuple[str, tuple[Any, ...], dict[str, Any]]
    ) -> tuple[bool, Any]:
        """Send a call and return whether it succeeded and with what; `_Ended` if there is no answer in time."""
        try:
            self._out.send_bytes(pickle.dumps(call, pickle.HIGHEST_PROTOCOL))
            end_s = time.monotonic() + longest_s
            while not self._in.poll(_POLL_S):
                if time.monotonic() >= end_s:
                    raise _Ended(f"did not end within {longest_s:.3g} s")
                if left_s() <= 0.0:
                    raise _Ended("did not end in the time that was left")
            return pickle.loads(self._in.recv_bytes())
        except (EOFError, OSError):
            raise _Ended(f"ended its process ({self._cause()})") from None

    def end(self) -> None:
        """End the process; it may be called again."""
        self.popen.kill()
        self.popen.wait()
        self._out.close()
        self._in.close()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _cause(self) -> str:
        self.popen.kill()
        code = self.popen.wait()
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def serve(name: str, calls: str, answers: str, caller: str) -> None:
    """Answer calls to the backend of a name until the caller is gone; runs in the other process."""
    with contextlib.suppress(OSError):  # only Linux has it: if memory runs out, this process is to go first
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_BE_KILLED)
    threading.Thread(target=end_with, args=(int(caller),), daemon=True).start()
    requests, replies = Connection(int(calls), writable=False), Connection(int(answers), readable=False)
    backend: Any = None
    while True:
        try:
            call, args, kwargs = pickle.loads(requests.recv_bytes())
        except EOFError:
            return
        try:
            backend = backend or backend_of(name)
            outcome = True, getattr(backend, call)(*args, **kwargs)
        except MemoryError:
            outcome = False, PassError("it takes more memory than there is")
        except Exception as error:
            outcome = False, _portable(error)
        replies.send_bytes(pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL))


def _portable(error: Exception) -> Exception:
    """The error itself if it is one of ours, or the words of it: those of a compiler cannot always be pickled."""
    if isinstance(error, RLFlowError):
        return error
    return PassError(f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}")
