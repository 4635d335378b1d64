"""Passes of a backend before the search, in a report."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PassesReport:
    """Whole-graph passes of a backend that were run before the search, or why none of those `tried` was taken.

    Costs are predicted, of the model before and after the passes. `domains` are those of operators that the model has
    by these passes alone; other runtimes may not know them.
    """

    backend: str
    passes: tuple[str, ...] = ()
    tried: int = 0
    cost_before_ms: float = 0.0
    cost_after_ms: float = 0.0
    wall_time_s: float = 0.0
    left_because: str = ""
    domains: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """One sentence."""
        if not self.passes:
            return f"Passes of {self.backend} first: none taken of {self.tried} tried ({self.left_because})."
        costs = f"predicted cost {self.cost_before_ms:.3f} ms -> {self.cost_after_ms:.3f} ms"
        return f"Passes of {self.backend} first: {', '.join(self.passes)}, of {self.tried} tried; {costs}."

    def to_json(self) -> dict[str, Any]:
        return vars(self) | {"passes": list(self.passes), "domains": list(self.domains)}
