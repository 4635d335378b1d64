"""Function calls in an isolated process, which may die of them: ONNX Runtime can abort, hang or fill the memory.

    call_isolated(Limits(longest_s=60), compare, original, candidate)

pickles the function and its arguments into a scratch folder, starts a fresh Python process that calls it there, and
unpickles the result or the exception. Models whose weights do not fit into a protobuf message leave them in a file
beside the call.

Invariant: however the other process ends, the caller gets a result or an exception, within the limits; and however
the caller ends, the other process does not go on for long. A Ctrl-C at the
terminal does not reach it; the caller decides what becomes of it.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ParamSpec, TypeVar

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
    """The limits of an isolated process: seconds, and bytes of memory of its own (mapped files do not count).

    It is ended as soon as `is_called_off` says so, which is asked again and again.
    """

    longest_s: float = 300.0
    most_memory_bytes: int = psutil.virtual_memory().total
    is_called_off: Callable[[], bool] = _never


class ProcessDeath(RLFlowError):
    """Raised when an isolated process ends without an answer."""


class ProcessTimeout(ProcessDeath):
    """Raised when an isolated process is ended because its time is over, or was called off."""


def call_isolated(
    limits: Limits, function: Callable[_Parameters, _Result], *args: _Parameters.args, **kwargs: _Parameters.kwargs
) -> _Result:
    """Call `function`, which must be importable by its name, in a fresh process; return or raise what it does there.

    Raises `ProcessDeath` if the process ends without an answer, because it crashes or reaches one of the limits, and
    `RLFlowError` if the scratch folder has no room for the arguments.
    """
    with scratch_folder() as folder:
        call, answer = folder / "call", folder / "answer"
        with call.open("wb") as file:
            _Pickler(file, folder).dump((function, args, kwargs))
        settings = (call, answer, limits.most_memory_bytes, os.getpid())
        command = [sys.executable, "-P", "-c", _SERVE, *map(str, settings)]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

        # C++ reports its own death on stderr, in no words for a person.
        with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True) as process:
            try:
                code = _code_within(limits, process)
            finally:
                process.kill()
        if code:
            raise ProcessDeath(f"ONNX Runtime ended the process that ran it ({_cause(code)})")

        with answer.open("rb") as file:
            succeeded, value = pickle.load(file)
    if not succeeded:
        raise value
    result: _Result = value
    return result


def _code_within(limits: Limits, process: subprocess.Popen[bytes]) -> int:
    """Wait for the process and return its exit code; `ProcessTimeout` if a limit is reached first."""
    started = time.perf_counter()
    while True:
        left_s = limits.longest_s - (time.perf_counter() - started)
        if limits.is_called_off():
            raise ProcessTimeout("it was interrupted")
        if left_s <= 0:
            raise ProcessTimeout(f"it did not finish within {limits.longest_s:.3g} s")
        with contextlib.suppress(subprocess.TimeoutExpired):
            return process.wait(min(_POLL_S, left_s))


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


def serve(call: str, answer: str, most_memory_bytes: str, caller: str) -> None:
    """Answer the call in file `call` with a pickled (succeeded, value) in file `answer`; runs in the other process.

    `caller` is the number of the process that waits for it.
    """
    # If memory runs out all the same, the kernel is to end this process and not its parent.
    with contextlib.suppress(OSError):  # only Linux has it
        Path("/proc/self/oom_score_adj").write_text(_FIRST_TO_BE_KILLED)
    with contextlib.suppress(ImportError):  # Windows has no such limits
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (int(most_memory_bytes),) * 2)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    threading.Thread(target=end_with, args=(int(caller),), daemon=True).start()
    with open(call, "rb") as file:
        function, args, kwargs = pickle.load(file)
    outcome = _outcome(function, args, kwargs)
    with open(answer, "wb") as file:
        pickle.dump(outcome, file, pickle.HIGHEST_PROTOCOL)


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


def _outcome(function: Callable[..., Any], args: Any, kwargs: Any) -> tuple[bool, Any]:
    try:
        return True, function(*args, **kwargs)
    except MemoryError:
        return False, ProcessDeath("it takes more memory than there is")
    except Exception as error:
        return False, error


def _cause(code: int) -> str:
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"
