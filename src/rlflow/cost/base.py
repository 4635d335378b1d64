"""What a graph costs, and what a cost model is."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Protocol

from rlflow.ir.graph import Graph


@dataclass(frozen=True, slots=True)
class Cost:
    """One inference of a graph (docs/decisions.md, 11).

    `launches` counts the nodes that run; `load_time_flops` the work on constant expressions, done once when the model
    is made.
    """

    runtime_ms: float
    flops: int
    bytes_moved: int
    launches: int
    load_time_flops: int

    def to_json(self) -> dict[str, float]:
        return asdict(self)


class CostModel(Protocol):
    """Prices graphs; the same graph always gets the same cost."""

    @property
    def name(self) -> str: ...

    def runtime_ms(self, graph: Graph) -> float: ...

    def cost(self, graph: Graph) -> Cost: ...
