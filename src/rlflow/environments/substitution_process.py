"""The process of rewriting a graph, seen as the choice of a rule and one of its locations.

    process = SubstitutionProcess(graph, rewriter, cost_model, EnvironmentConfig())
    state = process.start()
    after = process.step(state, next(iter(process.choices(state))))

The invariant: the k-th location of a rule is the k-th of its matches, so the counts carry the whole mask.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from rlflow.cost.base import CostModel
from rlflow.cost.evaluator import Evaluator
from rlflow.environments.process import Process, ProcessState
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.representation.action_space import ActionSpace, Locations
from rlflow.representation.features import Featuriser
from rlflow.representation.graph_arrays import GraphArrays
from rlflow.representation.vocabulary import Vocabulary
from rlflow.rules.matching.rewriter import Location, Matches, Rewriter

# An observation holds at least so many: a few rewrites may multiply a very small graph.
_LEAST_NODES, _LEAST_EDGES = 64, 128


@dataclass(frozen=True)
class EnvironmentConfig:
    """The sizes and the horizon of the environment.

    max_locations: L. max_steps: the horizon. start_rewrites: an episode starts after 0 to that many random rewrites.
    max_nodes, max_edges: bounds of the observation; 0 takes twice what the first graph has, or 64 nodes and 128 edges
    if that is more.
    """

    max_locations: int = 200
    max_steps: int = 100
    start_rewrites: int = 0
    max_nodes: int = 0
    max_edges: int = 0


@dataclass(frozen=True, eq=False)
class SubstitutionState(ProcessState):
    """A graph with its price, matches and arrays.

    counts: (R,) int64, matches of each rule that can be chosen. beyond: how many matches lie beyond L and cannot.
    origin: the state in which the episode began; None: this one.
    """

    matches: Matches
    counts: np.ndarray
    beyond: int
    arrays: GraphArrays
    origin: SubstitutionState | None

    @cached_property
    def runtime_ms(self) -> float:
        return self.cost.runtime_ms

    @property
    def percent(self) -> float:
        """The price in percent of the origin's."""
        start_ms = (self.origin or self).runtime_ms
        return 100.0 * self.runtime_ms / start_ms if start_ms else 100.0


class SubstitutionProcess(Process[SubstitutionState, tuple[int, int]]):
    """Rewrites one graph; choices are (rule, location).

    Graphs are written in `vocabulary`, today's by default: an agent that was trained earlier gives its own.
    evaluator: that of the search for which it does so, with the same rewriter and cost model; None: one of its own.
    """

    def __init__(
        self,
        graph: Graph,
        rewriter: Rewriter,
        cost_model: CostModel,
        config: EnvironmentConfig,
        vocabulary: Vocabulary | None = None,
        evaluator: Evaluator | None = None,
    ) -> None:
        self.evaluator = evaluator or Evaluator(rewriter, cost_model)
        self.actions = ActionSpace(len(rewriter.rules), config.max_locations)
        self._graph, self._featuriser = graph, Featuriser(vocabulary)
        self.vocabulary = self._featuriser.vocabulary
        edges = sum(len(node.sources) for node in graph.nodes.values())
        self.max_nodes = config.max_nodes or max(_LEAST_NODES, 2 * (len(graph.order) + len(graph.inputs)))
        self.max_edges = config.max_edges or max(_LEAST_EDGES, 2 * edges)

    def start(self) -> SubstitutionState:
        return self.at(self._graph)

    def at(self, graph: Graph, origin: SubstitutionState | None = None) -> SubstitutionState:
        """The state of a graph that rewriting has led to."""
        matches = self.evaluator.rewriter.matches(graph)
        found = np.array(matches.counts, dtype=np.int64)
        counts = np.minimum(found, self.actions.max_locations)
        beyond, arrays = int((found - counts).sum()), self._featuriser.arrays(graph)
        return SubstitutionState(graph, self.evaluator, matches, counts, beyond, arrays, origin)

    def choices(self, state: SubstitutionState) -> Collection[tuple[int, int]]:
        return Locations(state.counts)

    def step(self, state: SubstitutionState, choice: tuple[int, int]) -> SubstitutionState:
        rule, location = choice
        after = self.evaluator.rewritten(state.graph, state.matches[rule][location])
        return self.at(after, state.origin or state)

    def location(self, state: SubstitutionState, choice: tuple[int, int]) -> Location:
        return Location(*choice)

    def observe(self, state: SubstitutionState) -> dict[str, np.ndarray]:
        """The observation of docs/spaces.md. `InputError` for a graph that has outgrown it."""
        arrays = state.arrays
        if arrays.num_nodes > self.max_nodes or len(arrays.edges) > self.max_edges:
            raise InputError(
                f"the graph has grown to {arrays.num_nodes} nodes and {len(arrays.edges)} edges; the observation holds "
                f"{self.max_nodes} and {self.max_edges}: raise environment.max_nodes and environment.max_edges"
            )
        return {
            "op": _padded(arrays.op, self.max_nodes),
            "features": _padded(arrays.features, self.max_nodes),
            "edges": _padded(arrays.edges, self.max_edges),
            "num_nodes": np.array([arrays.num_nodes], dtype=np.int64),
            "num_edges": np.array([len(arrays.edges)], dtype=np.int64),
            "counts": state.counts.copy(),
            "rule_mask": self.actions.rule_mask(state.counts).astype(np.int8),
            "location_mask": self.actions.location_mask(state.counts).astype(np.int8),
            "cost": np.array([state.percent], dtype=np.float32),
        }


def _padded(array: np.ndarray, length: int) -> np.ndarray:
    padded = np.zeros((length, *array.shape[1:]), dtype=array.dtype)
    padded[: len(array)] = array
    return padded
