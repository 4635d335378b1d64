"""A graph and its prices as a study hands them to a process: by the graph's file, and by the name of a cost model."""

from dataclasses import dataclass
from pathlib import Path

from rlflow.cost.base import CostContext, CostModel
from rlflow.cost.models import COST_MODELS
from rlflow.ir.graph import Graph
from rlflow.onnx_io import from_onnx


@dataclass(frozen=True)
class Subject:
    """A graph's file and its prices, which a cell makes for itself, so that none profits from another."""

    model: Path
    cost_model: str
    context: CostContext

    @property
    def name(self) -> str:
        """The name of the graph: that of its file."""
        return self.model.stem

    def graph(self) -> Graph:
        """Read the graph."""
        return from_onnx(self.model)

    def prices(self) -> CostModel:
        """Make the cost model; it has priced nothing yet."""
        return COST_MODELS.get(self.cost_model)(self.context)
