"""Progress bars of a stage, also of work that other processes do for it.

    with shown_progress() as show:
        show("bert, epochs", 0.5, "15")

    with told_progress() as told:               given to a process, which does told.put(("bert, epochs", 0.5, "15"))

Two processes that draw on one terminal would overwrite each other, so that one draws and the others tell it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing import Manager
from threading import Thread
from typing import Protocol

from rich.console import Console
from rich.progress import Progress, TaskID

Show = Callable[[str, float, str], None]
"""Shows of the work with a description the fraction that is done, and a line of text."""


class Told(Protocol):
    """A queue of such triples, which ends with None."""

    def put(self, entry: tuple[str, float, str] | None) -> None: ...

    def get(self) -> tuple[str, float, str] | None: ...


@contextmanager
def shown_progress() -> Iterator[Show]:
    """Show a bar for each description, on standard error."""
    with Progress(console=Console(stderr=True), transient=True) as bars:
        known: dict[str, TaskID] = {}

        def show(description: str, fraction: float, text: str) -> None:
            if description not in known:
                known[description] = bars.add_task(description, total=1.0)
            line = f"{description}: {text}" if text else description
            bars.update(known[description], completed=fraction, description=line)

        yield show


@contextmanager
def told_progress() -> Iterator[Told]:
    """Show what is put into the queue that this yields, by whatever process."""
    with Manager() as manager, shown_progress() as show:
        told: Told = manager.Queue()
        listener = Thread(target=_listen, args=(told, show), daemon=True)
        listener.start()
        try:
            yield told
        finally:
            told.put(None)
            listener.join()


def _listen(told: Told, show: Show) -> None:
    while (entry := told.get()) is not None:
        show(*entry)
