"""Ctrl-C as a request: the first one asks a command to come to an end, the second one ends it.

    with first_interrupt() as is_interrupted:
        optimise(..., is_interrupted=is_interrupted)

Invariant: within the block the first Ctrl-C raises nothing, so that no work is lost half-way; from the second on, and
outside the block, it is a `KeyboardInterrupt` as ever.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def first_interrupt() -> Iterator[Callable[[], bool]]:
    """Yield a function that tells whether Ctrl-C was pressed. In the main thread alone, as Python's signals are."""
    pressed: list[int] = []

    def on_interrupt(number: int, frame: FrameType | None) -> None:
        if pressed:
            raise KeyboardInterrupt
        pressed.append(number)

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield lambda: bool(pressed)
    finally:
        signal.signal(signal.SIGINT, before)
