"""Work beside a measurement, as on a machine that others use."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_BUSY_LOOP = "while True: pass"


@contextmanager
def beside_busy_loops(count: int) -> Iterator[None]:
    """Keep so many processes busy with nothing until the end."""
    loops = [subprocess.Popen([sys.executable, "-c", _BUSY_LOOP]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
