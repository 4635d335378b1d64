"""Cost-based backtracking search (TASO, Jia et al. 2019, algorithm 2).

A graph that waits is known by the one before it and the rewrite that leads to it, with its exact price. It is made when
its turn comes, and most never have one: of BERT-Base's graphs hundreds wait for each that is expanded.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import NamedTuple

from rlflow.errors import InputError
from rlflow.method import OnProgress, Option, State, Workspace
from rlflow.search.base import Search


class _Waiting(NamedTuple):
    """A graph in the queue, by its price; of equal ones the first comes first. `option` leads to it from `before`."""

    runtime_ms: float
    serial: int
    before: State
    option: Option | None

    def made(self, work: Workspace) -> State:
        return self.before if self.option is None else work.take(self.before, self.option)


@dataclass(frozen=True)
class Backtracking(Search):
    """Expands the cheapest graph in the queue; keeps every new graph that costs less than `alpha` times the best.

    `alpha` above 1 lets the search pass through graphs that are worse than the best (the paper's 1.05). The budget's
    expansions are TASO's: graphs taken out of the queue, those apart that were taken out before. At most `queue_limit`
    graphs wait; the dearest are dropped. `InputError` for an `alpha` that is not positive.
    """

    alpha: float = 1.05
    queue_limit: int = 2000
    name: str = "backtracking"

    def __post_init__(self) -> None:
        if not self.alpha > 0:
            raise InputError(f"alpha is a multiple of the best price and must be positive, not {self.alpha}")

    def improve(self, work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
        best, best_ms, serial = state, state.runtime_ms, 0
        seen: set[str] = set()
        queue = [_Waiting(best_ms, serial, state, None)]
        while queue and not work.is_spent and queue[0].runtime_ms <= self.alpha * best_ms:
            state = heapq.heappop(queue).made(work)
            if state.hash in seen:
                continue
            seen.add(state.hash)
            best = min(best, state, key=lambda s: s.runtime_ms)
            for option in work.options(state):
                if option.runtime_ms < self.alpha * best_ms:
                    serial += 1
                    heapq.heappush(queue, _Waiting(option.runtime_ms, serial, state, option))
                    best_ms = min(best_ms, option.runtime_ms)
            if len(queue) > 2 * self.queue_limit:
                queue = heapq.nsmallest(self.queue_limit, queue)
            if on_progress:
                on_progress(work.fraction, f"best {best_ms:.3f} ms, {len(queue)} graphs waiting")
        return queue[0].made(work) if queue and queue[0].runtime_ms < best.runtime_ms else best
