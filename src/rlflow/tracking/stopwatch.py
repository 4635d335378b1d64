"""The wall time of work that may be interrupted, summed over all the processes that it took."""

import os
import time
from pathlib import Path


class Stopwatch:
    """A stopwatch that goes on from the time written in a file; `tick` writes it."""

    def __init__(self, path: Path):
        self._path = path
        self._before_s = float(path.read_text()) if path.exists() else 0.0
        self._started = time.perf_counter()

    def tick(self) -> float:
        """Write and return the seconds so far."""
        elapsed_s = self._before_s + time.perf_counter() - self._started
        draft = self._path.with_suffix(".draft")
        draft.write_text(repr(elapsed_s))
        os.replace(draft, self._path)
        return elapsed_s
