"""Graph substitution as a Gymnasium environment: choose a rule and a location, or stop.

    env = SubstitutionEnv(graph, library, cost_model)
    observation, info = env.reset(seed=0)
    rule = int(observation["counts"].argmax())
    observation, reward, terminated, truncated, info = env.step((rule, 0))

The invariant: the k-th location of a rule is the k-th of its matches, so the counts carry the whole mask. The same
graph, library and actions lead to the same graphs, hashes and rewards in any process.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces

from rlflow.cost.base import CostModel
from rlflow.cost.evaluator import Evaluator
from rlflow.environments.process_env import ProcessEnv
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.processes.process import Process, ProcessState
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


class SubstitutionEnv(ProcessEnv[SubstitutionProcess]):
    """Graph substitution as docs/spaces.md describes it.

    Observation: `op` (N,), `features` (N, F), `edges` (E, 2) of the graph, zero beyond `num_nodes` and `num_edges`;
    `counts` (R,) matches a rule, at most L; `rule_mask` (R + 1,) and `location_mask` (R, L), which follow from the
    counts; `cost` (1,) runtime in percent of the start. Action: (rule, location); rule R terminates.

    `info["matches_beyond_limit"]` counts the matches that lie beyond L.
    """

    formulation, settings = SubstitutionProcess, EnvironmentConfig

    @property
    def vocabulary(self) -> Vocabulary:
        """The names behind the numbers of `op` and `features`."""
        return self.process.vocabulary

    @property
    def actions(self) -> ActionSpace:
        """The actions (rule, location)."""
        return self.process.actions

    def first(self, options: dict[str, Any]) -> SubstitutionState:
        """Go back to the graph, or to a graph up to `start_rewrites` random rewrites away from it.

        `options["start_rewrites"]` asks for exactly that many.
        """
        state, wanted = self.process.start(), options.get("start_rewrites")
        if wanted is None and self.config.start_rewrites:
            wanted = int(self.np_random.integers(self.config.start_rewrites + 1))

        for _ in range(wanted or 0):
            found = [match for of_rule in state.matches for match in of_rule]
            if not found:
                break
            match = found[int(self.np_random.integers(len(found)))]
            state = self.process.at(self.process.evaluator.rewritten(state.graph, match))
        return state

    def choice(self, action: Sequence[int] | np.ndarray) -> tuple[int, int] | None:
        rule, location = int(action[0]), int(action[1])
        return None if rule == self.actions.terminate else (rule, location)

    def action_masks(self) -> np.ndarray:
        """Masks for stock MaskablePPO, (R + 1 + L,) bool: the valid rules, then the locations that some rule has.

        The two parts are independent, so stock masking still admits pairs that do not exist; they earn
        `reward.invalid`. `agents.graph_level.factored_policy` masks the location given the rule instead.
        """
        counts = self.state.counts
        widest = np.arange(self.actions.max_locations) < max(1, counts.max(initial=0))
        return np.concatenate([self.actions.rule_mask(counts), widest])

    def details(self) -> dict[str, Any]:
        return {"matches_beyond_limit": self.state.beyond}

    def lines(self) -> Iterator[str]:
        for node in (self.graph.nodes[identifier] for identifier in self.graph.order):
            yield f"{'/'.join(node.names)} = {node.op} {node.types[0]}"
        for rule, found in zip(self.library.rules, self.state.matches, strict=True):
            if found:
                yield f"  {rule.name}: {len(found)} matches"

    def make_spaces(self) -> tuple[spaces.MultiDiscrete, spaces.Dict]:
        nodes, edges, rules = self.process.max_nodes, self.process.max_edges, self.actions.num_rules
        observed: dict[str, spaces.Space[Any]] = {
            "op": spaces.Box(0, len(self.vocabulary.operators) - 1, (nodes,), np.int64),
            "features": spaces.Box(0.0, np.inf, (nodes, len(self.vocabulary.features)), np.float32),
            "edges": spaces.Box(0, max(1, nodes - 1), (edges, 2), np.int64),
            "num_nodes": spaces.Box(0, nodes, (1,), np.int64),
            "num_edges": spaces.Box(0, edges, (1,), np.int64),
            "counts": spaces.Box(0, self.actions.max_locations, (rules,), np.int64),
            "rule_mask": spaces.MultiBinary(rules + 1),
            "location_mask": spaces.MultiBinary([rules, self.actions.max_locations]),
            "cost": spaces.Box(0.0, np.inf, (1,), np.float32),
        }
        return spaces.MultiDiscrete([rules + 1, self.actions.max_locations]), spaces.Dict(observed)


def _padded(array: np.ndarray, length: int) -> np.ndarray:
    padded = np.zeros((length, *array.shape[1:]), dtype=array.dtype)
    padded[: len(array)] = array
    return padded
