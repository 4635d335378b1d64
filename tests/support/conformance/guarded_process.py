"""A function called in a process that may die of it: libraries in C++ can crash, hang or fill the memory."""

import multiprocessing
import os
import resource
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Any

LONGEST_S = 60.0
MOST_MEMORY_BYTES = 4 * 2**30
"""Address space beyond what the process has when it starts."""

_CONTEXT = multiprocessing.get_context("spawn")

Function = Callable[[Any], str]


class GuardedProcess:
    """Answers with what `function` returns for an argument, or how it failed; after a death another one is started."""

    def __init__(self, function: Function, *, longest_s: float = LONGEST_S) -> None:
        self.function = function
        self.longest_s = longest_s

    def __enter__(self) -> "GuardedProcess":
        self._connection, inner = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(self.function, inner), daemon=True)
        self._process.start()
        inner.close()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.join()
        self._connection.close()

    def __call__(self, argument: Any) -> str:
        self._connection.send(argument)
        try:
            if self._connection.poll(self.longest_s):
                return str(self._connection.recv())
            answer = f"hang: no answer in {self.longest_s} s"
        except (EOFError, ConnectionResetError):
            self._process.join()
            answer = f"crash: exit code {self._process.exitcode}"
        self.__exit__(None, None, None)
        self.__enter__()
        return answer


def _serve(function: Function, connection: Connection) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what C++ says of its death
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MOST_MEMORY_BYTES,) * 2)
    while True:
        argument = connection.recv()
        try:
            connection.send(function(argument))
        except Exception:
            connection.send(f"traceback: {traceback.format_exc()}")
