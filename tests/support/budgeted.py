"""Time that passes when somebody says so, and methods that note how much of it they were given."""

from dataclasses import dataclass, field

from rlflow.ir.graph import Graph
from rlflow.method import Budget, Method, OnProgress, OptimisationResult
from rlflow.rules.matching.rewriter import Rewriter


@dataclass
class Clock:
    """Seconds that pass when `wait` says so."""

    now_s: float = 0.0

    def __call__(self) -> float:
        return self.now_s

    def wait(self, seconds: float) -> None:
        self.now_s += seconds


@dataclass
class Recorded:
    """A method, and the seconds that it was given; by `clock` it takes all of each."""

    method: Method
    budgets: list[float | None] = field(default_factory=list)
    clock: Clock | None = None

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def rewriter(self) -> Rewriter:
        return self.method.rewriter

    def optimise(self, graph: Graph, budget: Budget, on_progress: OnProgress | None = None) -> OptimisationResult:
        self.budgets.append(budget.time_s)
        if self.clock is not None and budget.time_s is not None:
            self.clock.wait(budget.time_s)
        return self.method.optimise(graph, Budget(), on_progress)
