"""What a search may take for granted of a model, beyond what the model says: sizes that its user names, a newer opset.

The search sees the graph under all of it. What is delivered takes no more for granted than its rewrites need.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path

from onnx import ModelProto

from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.ir.tensor_type import Dimension
from rlflow.onnx_io import from_onnx
from rlflow.onnx_io.opset_upgrade import upgraded
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import Rule
from rlflow.runtime.opsets import is_supported
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.transfer import Transfer, transferred


@dataclass(frozen=True)
class Settled:
    """A trajectory on the graph of which least is taken for granted among those where all its steps can be taken.

    `pinned_for` are the ids of the rules of steps that cannot be taken while the sizes are open, `raised_for` those of
    steps that the model's own opset does not have; both are empty where nothing had to be taken for granted.
    """

    start: Graph
    last: Graph
    trajectory: Trajectory
    pinned_for: tuple[str, ...] = ()
    raised_for: tuple[str, ...] = ()


@dataclass(frozen=True)
class Assumptions:
    """One model as a graph of open sizes and, with the same numbers of nodes, of the sizes `dimensions`, by symbol.
    `rules` are those that may be used.
    """

    as_it_is: Graph
    pinned: Graph
    dimensions: Mapping[str, int]
    rules: Sequence[Rule]

    @classmethod
    def of(cls, model: ModelProto | Path | str, dimensions: Mapping[str, int], rules: Sequence[Rule]) -> Assumptions:
        """Raises as `from_onnx` does."""
        as_it_is = from_onnx(model)
        return cls(as_it_is, from_onnx(model, dimensions) if dimensions else as_it_is, dimensions, rules)

    @property
    def shapes(self) -> dict[str, tuple[Dimension, ...]]:
        """Of the inputs whose sizes are named, by name."""
        shapes = {}
        for identifier in self.pinned.inputs:
            node = self.pinned.nodes[identifier]
            (kind,) = node.types
            if kind is not None and kind.shape is not None and node.types != self.as_it_is.nodes[identifier].types:
                shapes[node.names[0]] = kind.shape
        return shapes

    @cached_property
    def searched(self) -> Graph:
        """With all sizes, for the newest opset that a rule wants, that is supported here and to which the model can
        safely be raised; for the model's own where there is none.
        """
        own = self.pinned.header.opset
        wanted = {rule.versions[""] for rule in self.rules if rule.versions[""] > own}
        graphs = (upgraded(self.pinned, opset) for opset in sorted(wanted, reverse=True) if is_supported(opset))
        return next((graph for graph in graphs if graph is not None), self.pinned)

    def settled(self, trajectory: Trajectory, rewriter: Rewriter) -> Settled:
        """From a trajectory that starts from `searched`. To leave sizes open counts for more than to keep the opset."""
        tried: dict[tuple[bool, bool], Transfer] = {}
        for with_sizes, newer in product(*[(False, True)] * 2):
            start = self._graph(with_sizes, self._needed_opset(trajectory, rewriter) if newer else None)
            transfer = tried[with_sizes, newer] = transferred(self.searched, trajectory, start, rewriter)
            if not transfer.refused:
                break
        return Settled(
            start,
            transfer.last,
            transfer.trajectory,
            pinned_for=tried[False, newer].refused,
            raised_for=tried[with_sizes, False].refused,
        )

    def start_of(self, trajectory: Trajectory, rewriter: Rewriter) -> Graph:
        """The graph that a trajectory that was settled starts from: of the sizes unless it starts from the model as it
        is, raised where its steps want it.
        """
        with_sizes = structural_hash(self.as_it_is) != trajectory.start_hash
        return self._graph(with_sizes, self._needed_opset(trajectory, rewriter))

    def _needed_opset(self, trajectory: Trajectory, rewriter: Rewriter) -> int:
        """The first one that has all operators that the steps write."""
        taken = {step.rule for step in trajectory.steps}
        return max((rule.versions[""] for rule in rewriter.rules if rule.id in taken), default=0)

    def _graph(self, with_sizes: bool, opset: int | None) -> Graph:
        graph = self.pinned if with_sizes else self.as_it_is
        return graph if opset is None or opset <= graph.header.opset else upgraded(graph, opset) or graph
