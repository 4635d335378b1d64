"""Function calls in an isolated process, which may die of them: ONNX Runtime can abort, hang or fill the memory.

    call_isolated(Limits(longest_s=60), compare, original, candidate)

    with Workers() as workers:
        limits = Limits(longest_s=60, workers=workers)
        call_isolated(limits, compare, original, candidate)
        call_isolated(limits, compare, original, another)           in the same process, if it lives

sends the pickled function and its arguments to a Python process, which calls it there, and unpickles the result or the
exception. Models whose weights do not fit into a protobuf message leave them in a file beside the call. Without
`workers` the process is fresh and serves one call. Among workers it goes on to the next, and has imported what that
needs; one that has died or was ended gives way to a new one.

Invariant: however the other process ends, the caller gets a result or an exception, within the limits; and however
the caller ends, the other process does not go on for long. A Ctrl-C at the
terminal does not reach it; the caller decides what becomes of it.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO, Any, ParamSpec, Self, TypeVar

import psutil
from onnx import ModelProto

from rlflow.errors import RLFlowError
from rlflow.onnx_io.external_data import MESSAGE_LIMIT_BYTES, inside_bytes, refer, tensors_of, with_weights_in
from rlflow.runtime.scratch import scratch_folder

_Result = TypeVar("_Result")
_Parameters = ParamSpec("_Parameters")
_SERVE = "import sys; from rlflow.runtime.isolation import serve; serve(*sys.argv[1:])"
_FIRST_TO_BE_KILLED = "1000"


_POLL_S = 0.05
_CALLER_POLL_S = 1.0


def _never() -> bool:
    return False


@dataclass(frozen=True)
class Limits:
    """The limits of an isolated call: seconds, and bytes of memory of its process (mapped files do not count).

    It is ended as soon as `is_called_off` says so, which is asked again and again. One of the `workers` serves it, if
    there are any, and else a process of its own.
    """

    longest_s: float = 300.0
    most_memory_bytes: int = psutil.virtual_memory().total
    is_called_off: Callable[[], bool] = _never
    workers: Workers | None = None


class ProcessDeath(RLFlowError):
    """Raised when an isolated process ends without an answer."""


class ProcessTimeout(ProcessDeath):
    """Raised when an isolated process is ended because its time is over, or was called off."""


def call_isolated(
    limits: Limits, function: Callable[_Parameters, _Result], *args: _Parameters.args, **kwargs: _Parameters.kwargs
) -> _Result:
    """Call `function`, which must be importable by its name, in another process; return or raise what it does there.

    Raises `ProcessDeath` if the process ends without an answer, because it crashes or reaches one of the limits, and
    `RLFlowError` if the scratch folder has no room for the weights of a model that fits into no message.
    """
    with contextlib.ExitStack() as until_answered:
        folder = until_answered.enter_context(scratch_folder())
        call = io.BytesIO()
        _Pickler(call, folder).dump((function, args, kwargs))
        workers = limits.workers or until_answered.enter_context(Workers())
        worker = until_answered.enter_context(workers.one())
        succeeded, value = worker.answer(limits, call.getbuffer())
    if not succeeded:
        raise value
    result: _Result = value
    return result


class Workers:
    """Processes that answer one call after another. The first starts at once, others when all are busy or have died.

    They import `modules` beforehand, and have the variables of the `environment` besides the caller's.
    """

    def __init__(self, *modules: str, environment: Mapping[str, str] | None = None) -> None:
        self._start = partial(Worker, modules, environment or {})
        self._idle, self._busy, self._is_open = [self._start()], list[Worker](), True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

    def __reduce__(self) -> tuple[type, tuple[()]]:
        """Travel as None: they serve this process alone."""
        return type(None), ()

    def close(self) -> None:
        """End them; a later call has a process of its own."""
        self._is_open = False
        while self._idle:
            self._idle.pop().end()

    @property
    def process_ids(self) -> tuple[int, ...]:
        """The numbers of the processes, the busy ones first."""
        return tuple(worker.process_id for worker in (*self._busy, *self._idle))

    @contextlib.contextmanager
    def one(self) -> Iterator[Worker]:
        """Yield one that nobody else has until the context ends. It is ended where a call in it did not."""
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = self._start()
        self._busy.append(worker)
        is_answered = False
        try:
            yield worker
            is_answered = True
        finally:  # an interrupt ends it too: the answer that is due must not be taken for that of the next call
            self._busy.remove(worker)
            if is_answered and self._is_open:
                self._idle.append(worker)
            else:
                worker.end()


class Worker:
    """A Python process that answers one call after another, and the two pipes to it."""

    def __init__(self, modules: Sequence[str], environment: Mapping[str, str]) -> None:
        (calls, own_calls), (own_answers, answers) = os.pipe(), os.pipe()
        self._calls, self._answers = Connection(own_calls, readable=False), Connection(own_answers, writable=False)
        settings = (str(calls), str(answers), str(os.getpid()), *modules)
        path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _SERVE, *settings],
                env={**os.environ, **path, **environment},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # C++ and compilers report to both, in no words for a person
                stderr=subprocess.DEVNULL,
                pass_fds=(calls, answers),
                start_new_session=True,
            )
        finally:
            os.close(calls)
            os.close(answers)
        self.end = weakref.finalize(self, _end, os.getpid(), self._process, self._calls, self._answers)
        """End the process; nothing happens if that was done. It is done at last when nobody has the worker any more."""

    @property
    def process_id(self) -> int:
        return self._process.pid

    def answer(self, limits: Limits, call: bytes | memoryview) -> tuple[bool, Any]:
        """Return whether a pickled (function, args, kwargs) succeeded, and its result or its exception.

        Raises `ProcessDeath` if there is none. After that, or any other exception, the worker can only be ended.
        """
        end_s = time.perf_counter() + limits.longest_s
        try:
            self._calls.send(limits.most_memory_bytes)
            self._calls.send_bytes(call)
            while True:
                left_s = end_s - time.perf_counter()
                if limits.is_called_off():
                    raise ProcessTimeout("it was interrupted")
                if left_s <= 0:
                    raise ProcessTimeout(f"it did not finish within {limits.longest_s:.3g} s")
                if self._answers.poll(min(_POLL_S, left_s)):
                    answer: tuple[bool, Any] = self._answers.recv()
                    return answer
        except (EOFError, OSError):
            self._process.kill()
            raise ProcessDeath(f"the process that ran it was ended ({_cause(self._process.wait())})") from None


def _end(caller: int, process: subprocess.Popen[bytes], *pipes: Connection) -> None:
    if os.getpid() == caller:  # not in a copy of it, made by a fork
        process.kill()
        process.wait()
    for pipe in pipes:
        pipe.close()


class _Pickler(pickle.Pickler):
    """A pickler that writes weights too large for a protobuf message to a folder, to which the model then refers."""

    def __init__(self, file: IO[bytes], folder: Path) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self.folder = folder

    def reducer_override(self, value: Any) -> Any:
        if not isinstance(value, ModelProto) or inside_bytes(value) <= MESSAGE_LIMIT_BYTES:
            return NotImplemented  # pickled as usual
        slim = with_weights_in(value, self.folder / f"weights_{id(value)}")
        for tensor in tensors_of(slim):
            refer(tensor, [self.folder])
        return slim.__reduce_ex__(pickle.HIGHEST_PROTOCOL)


def serve(calls: str, answers: str, caller: str, *modules: str) -> None:
    """Answer calls until the caller is gone; runs in the other process.

    calls, answers: the ends of the pipes; caller: the number of the process that waits at their other ends.
    """
    # If memory runs out all the same, the kernel is to end this process and not its parent.
    with contextlib.suppress(OSError):  # only Linux has it
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_BE_KILLED)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    threading.Thread(target=end_with, args=(int(caller),), daemon=True).start()
    requests, replies = Connection(int(calls), writable=False), Connection(int(answers), readable=False)
    for module in modules:
        import_module(module)
    with contextlib.suppress(EOFError):  # the caller needs no more answers
        while True:
            most_memory_bytes, call = requests.recv(), requests.recv_bytes()
            resource.setrlimit(resource.RLIMIT_DATA, (most_memory_bytes, resource.getrlimit(resource.RLIMIT_DATA)[1]))
            replies.send_bytes(_outcome(call))


def _outcome(call: bytes) -> bytes:
    """Return the pickled (succeeded, value) of a call."""
    outcome: tuple[bool, object]
    try:
        function, args, kwargs = pickle.loads(call)
        outcome = True, function(*args, **kwargs)
    except MemoryError:
        outcome = False, ProcessDeath("it takes more memory than there is")
    except Exception as error:
        outcome = False, error
    return pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL)


def end_with(caller: int) -> None:
    """End this process when its caller has ended, even if that was killed: nobody would read the answer.

    A caller may have ended before this process could ask for its parent, and some systems never change that.
    """
    parent = os.getppid()
    while os.getppid() == parent and _is_alive(caller):
        time.sleep(_CALLER_POLL_S)
    os._exit(1)


def _is_alive(process: int) -> bool:
    """Tell if a process runs; one that has ended keeps its number until its own parent has asked what became of it."""
    try:
        return bool(psutil.Process(process).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def _cause(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
