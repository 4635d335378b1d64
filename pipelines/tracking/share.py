"""The share that one worker has of work which comes in numbered pieces, such as episodes or lessons."""

from dataclasses import dataclass

from rlflow.errors import InputError


@dataclass(frozen=True)
class Share:
    """Pieces worker, worker + workers, worker + 2 workers, ...; by default all of them."""

    worker: int = 0
    workers: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.worker < self.workers:
            raise InputError(f"there is no worker {self.worker} among {self.workers}; they are counted from 0")

    def of(self, pieces: int) -> range:
        """Return the numbers of this worker's pieces, among so many."""
        return range(self.worker, pieces, self.workers)
