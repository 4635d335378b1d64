"""Progress bars of a stage, also of work that other processes do for it.

    with shown_progress() as show:
        show(("bert, epochs", 0.5, "15"))

    with told_progress() as told:               given to a process, which does tell(told, ("bert, epochs", 0.5, "15"))

Two processes that draw on one terminal would overwrite each other, so that one draws and the others tell it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Thread
from typing import NamedTuple, Protocol

from rich.console import Console
from rich.progress import Progress, TaskID, TextColumn

from tracking.processes import queue_process

_LONGEST_STEP_S = 24 * 3600.0


class Advance(NamedTuple):
    """The state of a piece of work: its name, the fraction that is done, and a few words more."""

    name: str
    fraction: float
    words: str


class Told(Protocol):
    """A queue through which other processes tell of their work; None says that nothing follows."""

    def put(self, advance: Advance | None) -> None: ...

    def get(self) -> Advance | None: ...


@contextmanager
def shown_progress() -> Iterator[Callable[[Advance], None]]:
    """Show a bar for each piece of work, on standard error."""
    with bars_of(Console(stderr=True)) as bars:
        known: dict[str, TaskID] = {}

        def show(advance: Advance) -> None:
            name, fraction, words = advance
            if name not in known:
                known[name] = bars.add_task(name, total=1.0)
            bars.update(known[name], completed=fraction, description=f"{name}: {words}" if words else name)

        yield show


def bars_of(console: Console, clock: Callable[[], float] = time.monotonic) -> Progress:
    """Make bars that show the time left, by the mean pace since the first step seen, without those of a checkpoint.

    rich forgets steps after half a minute by default; a step of a training may take longer.
    """
    columns = (*Progress.get_default_columns(), TextColumn("left"))
    return Progress(
        *columns,
        console=console,
        transient=True,
        speed_estimate_period=_LONGEST_STEP_S,
        get_time=clock,
        disable=not console.is_terminal,  # else each bar would leave an empty line in a log
    )


@contextmanager
def told_progress() -> Iterator[Told]:
    """Show what any process puts into the queue that this yields."""
    with queue_process() as queues, shown_progress() as show:
        told: Told = queues.Queue()
        listener = Thread(target=_listen, args=(told, show), daemon=True)
        listener.start()
        yield told
        tell(told, None)
        listener.join()


def tell(told: Told, advance: Advance | None) -> None:
    """Put into the queue; if nobody draws any more, work goes on without a bar."""
    with suppress(OSError, EOFError):
        told.put(advance)


def _listen(told: Told, show: Callable[[Advance], None]) -> None:
    with suppress(OSError, EOFError):
        while (advance := told.get()) is not None:
            show(advance)
