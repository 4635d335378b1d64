"""Processes that do a part of a stage's work, and end with it even if it is killed.

    with process_pool(2) as pool:
        pool.submit(train, "bert")

A process that outlived its stage would go on writing into the folders of the next one. All are forked from a server
that has imported the stage's script once, and nothing else; what the work needs beside it each imports by itself.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.managers import SyncManager
from typing import Any

from rlflow.runtime.isolation import end_with


def process_pool(processes: int) -> ProcessPoolExecutor:
    """Make a pool of so many processes, to be given functions of modules."""
    return ProcessPoolExecutor(processes, get_context("forkserver"), initializer=_attach, initargs=(os.getpid(),))


@contextmanager
def mapping(processes: int) -> Iterator[Callable[..., Iterator[Any]]]:
    """Yield what calls a function of a module with items one by one as `map` does, so many at a time.

    Where that is one, they are called in this process: another would begin with seconds of imports.
    """
    if processes == 1:
        yield map
    else:
        with process_pool(processes) as pool:
            yield pool.map


def queue_process() -> SyncManager:
    """Start a process whose queues other processes can be given; to be used as a context."""
    manager = SyncManager(ctx=get_context("forkserver"))
    manager.start(_attach, (os.getpid(),))
    return manager


def _attach(caller: int) -> None:
    threading.Thread(target=end_with, args=(caller,), daemon=True).start()
