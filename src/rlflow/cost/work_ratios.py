"""The work of one graph relative to another: floating-point operations, launches and peak memory."""

from __future__ import annotations

from rlflow.cost.base import CostModel
from rlflow.cost.memory import peak_memory_bytes
from rlflow.ir.graph import Graph


def work_ratios(cost_model: CostModel, before: Graph, after: Graph) -> dict[str, float]:
    """Return each kind of work before over after: above 1 if the second graph needs less."""
    old, new = cost_model.cost(before), cost_model.cost(after)
    return {
        "flops_ratio": _over(old.flops, new.flops),
        "launches_ratio": _over(old.launches, new.launches),
        "peak_memory_ratio": _over(peak_memory_bytes(before), peak_memory_bytes(after)),
    }


def _over(old: float, new: float) -> float:
    return old / new if new else 1.0
