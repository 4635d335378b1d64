"""Cost-based backtracking search (TASO, Jia et al. 2019, algorithm 2)."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from rlflow.errors import InputError
from rlflow.optimiser import OnProgress, State, Workspace
from rlflow.search.base import Search


@dataclass(frozen=True)
class Backtracking(Search):
    """Expands the cheapest graph in the queue; keeps every new graph that costs less than `alpha` times the best.

    `alpha` above 1 lets the search pass through graphs that are worse than the best (the paper's 1.05). The budget's
    expansions are TASO's: graphs taken out of the queue. At most `queue_limit` graphs wait; the dearest are dropped.
    `InputError` for an `alpha` that is not positive.
    """

    alpha: float = 1.05
    queue_limit: int = 2000
    name: str = "backtracking"

    def __post_init__(self) -> None:
        if not self.alpha > 0:
            raise InputError(f"alpha is a multiple of the best price and must be positive, not {self.alpha}")

    def improve(self, work: Workspace, state: State, on_progress: OnProgress | None = None) -> State:
        best = state
        seen = {best.hash}
        serial = 0
        queue = [(best.runtime_ms, serial, best)]
        while queue and not work.is_spent:
            runtime_ms, _, state = heapq.heappop(queue)
            if runtime_ms > self.alpha * best.runtime_ms:
                break
            for option in work.options(state):
                if option.runtime_ms >= self.alpha * best.runtime_ms:
                    continue
                child = work.take(state, option)
                if child.hash in seen:
                    continue
                seen.add(child.hash)
                serial += 1
                best = min(best, child, key=lambda s: s.runtime_ms)
                heapq.heappush(queue, (child.runtime_ms, serial, child))
            if len(queue) > 2 * self.queue_limit:
                queue = heapq.nsmallest(self.queue_limit, queue)
            if on_progress:
                on_progress(work.fraction, f"best {best.runtime_ms:.3f} ms, {len(queue)} graphs waiting")
        return best
