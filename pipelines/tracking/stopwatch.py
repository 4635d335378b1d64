"""The wall time of work that may be interrupted, summed over all the processes that it took."""

import time
from pathlib import Path

from rlflow.atomic_file import written_whole


class Stopwatch:
    """A stopwatch that goes on from the time written in a file; `tick` writes it."""

    def __init__(self, path: Path):
        self._path = path
        self._before_s = float(path.read_text()) if path.exists() else 0.0
        self._started = time.perf_counter()

    def tick(self) -> float:
        """Write and return the seconds so far."""
        elapsed_s = self._before_s + time.perf_counter() - self._started
        with written_whole(self._path) as draft:
            draft.write_text(repr(elapsed_s))
        return elapsed_s
