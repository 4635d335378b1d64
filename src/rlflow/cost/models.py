"""The cost models that can be chosen by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rlflow.plugins import Registry

if TYPE_CHECKING:
    from rlflow.cost.base import CostModelFactory

HERE = "here"
"""Stands for the processor of this machine, or the one most like it whose prices are known."""

COST_MODELS: Registry[CostModelFactory] = Registry(
    noun="cost model",
    group="rlflow.cost_models",
    built_in={
        "measured": "rlflow.cost.measured:measured",
        "predicted": "rlflow.cost.predicted.cost:predicted",
        "analytic": "rlflow.cost.analytic:analytic",
        "gpu": "rlflow.cost.analytic:gpu",
    },
)
