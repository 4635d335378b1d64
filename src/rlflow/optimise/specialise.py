"""Assumptions that a search may make of a model: dimensions that its user names, and a newer opset.

The search sees the graph under all of these assumptions, and finds more. What is delivered assumes no more than its
rewrites need: a trajectory that can also be taken on the graph of dynamic sizes leaves them dynamic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

from onnx import ModelProto

from rlflow.errors import ReplayError
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.ir.tensor_type import Dimension
from rlflow.method import OptimisationResult
from rlflow.onnx_io import graph_of
from rlflow.onnx_io.opset_upgrade import upgraded
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.rules.rule import Rule
from rlflow.runtime.opsets import is_supported
from rlflow.trajectory.record import Trajectory
from rlflow.trajectory.replay import of_its_rules
from rlflow.trajectory.transfer import Transfer, transferred


@dataclass(frozen=True)
class Settled:
    """A trajectory on the graph that assumes least among those where all its steps can be taken.

    `pinned_for` are the ids of the rules of steps that cannot be taken while the sizes are dynamic, `raised_for` those
    of steps that the model's own opset does not have; both are empty where nothing had to be assumed.
    """

    start: Graph
    last: Graph
    trajectory: Trajectory
    pinned_for: tuple[str, ...] = ()
    raised_for: tuple[str, ...] = ()


@dataclass(frozen=True)
class Assumptions:
    """A valid model, and what may be assumed of it: the sizes `dimensions`, by symbol, and what `rules` want.

    Each of its graphs is imported when it is first asked for, and no more than once. All have the same node numbers.
    """

    model: ModelProto
    dimensions: Mapping[str, int]
    rules: Sequence[Rule]

    @cached_property
    def as_it_is(self) -> Graph:
        """The graph of dynamic sizes. Raises as `from_onnx` does."""
        return graph_of(self.model)

    @cached_property
    def pinned(self) -> Graph:
        """The graph of the sizes `dimensions`; the other one where there are none. Raises as `from_onnx` does."""
        return graph_of(self.model, self.dimensions) if self.dimensions else self.as_it_is

    @cached_property
    def searched(self) -> Graph:
        """The pinned graph for the newest opset that a rule wants, that is supported here and to which the model can
        safely be raised; for the model's own opset where there is none.
        """
        own = self.pinned.header.opset
        wanted = {rule.versions[""] for rule in self.rules if rule.versions[""] > own}
        graphs = (upgraded(self.pinned, opset) for opset in sorted(wanted, reverse=True) if is_supported(opset))
        return next((graph for graph in graphs if graph is not None), self.pinned)

    @property
    def shapes(self) -> dict[str, tuple[Dimension, ...]]:
        """Shapes of the inputs whose sizes are named, by the input's name."""
        shapes = {}
        for identifier in self.pinned.inputs:
            node = self.pinned.nodes[identifier]
            (tensor_type,) = node.types
            is_named = node.types != self.as_it_is.nodes[identifier].types
            if is_named and tensor_type is not None and tensor_type.shape is not None:
                shapes[node.names[0]] = tensor_type.shape
        return shapes

    def settled(self, result: OptimisationResult, rewriter: Rewriter) -> Settled:
        """Move a search's trajectory from `searched` to the graph that assumes least: to leave sizes dynamic counts for
        more than to keep the opset.

        `ReplayError` if the trajectory does not lead to the best graph.
        """
        needed = self._needed_opset(result.trajectory, rewriter)
        rewriter = of_its_rules(result.trajectory, rewriter)
        sizes = (False, True) if self.dimensions else (False,)
        opsets = (False, True) if needed > self.pinned.header.opset else (False,)
        tried: dict[tuple[bool, bool], Transfer] = {}
        for with_sizes, newer in product(sizes, opsets):
            start = self._graph(with_sizes, needed if newer else None)
            if start.nodes is self.searched.nodes and needed <= start.header.opset:
                transfer = _of_the_same_nodes(result, start)
            else:
                transfer = transferred(self.searched, result.trajectory, start, rewriter)
            tried[with_sizes, newer] = transfer
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
        """The graph that a settled trajectory starts from: the pinned one unless it starts from the model as it is,
        raised where its steps want it.
        """
        with_sizes = structural_hash(self.as_it_is) != trajectory.start_hash
        return self._graph(with_sizes, self._needed_opset(trajectory, rewriter))

    def _needed_opset(self, trajectory: Trajectory, rewriter: Rewriter) -> int:
        """The first opset that has all operators that the steps write."""
        taken = {step.rule for step in trajectory.steps}
        return max((rule.versions[""] for rule in rewriter.rules if rule.id in taken), default=0)

    def _graph(self, with_sizes: bool, opset: int | None) -> Graph:
        graph = self.pinned if with_sizes else self.as_it_is
        return graph if opset is None or opset <= graph.header.opset else upgraded(graph, opset) or graph


def _of_the_same_nodes(result: OptimisationResult, start: Graph) -> Transfer:
    """The trajectory from a graph that has the very nodes that the search began with, for an opset that has all its
    steps: the search has been there already, and nothing is replayed.
    """
    steps = result.trajectory.steps
    promised = steps[-1].hash if steps else result.trajectory.start_hash
    found = structural_hash(result.best)
    if found != promised:
        raise ReplayError(f"the method's best graph is {found}, but its trajectory leads to {promised}")
    return Transfer(replace(result.best, header=start.header, edit=None), result.trajectory, ())
