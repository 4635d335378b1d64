"""Graph substitution as a Gymnasium environment: choose a rule and a location, or stop.

    env = SubstitutionEnv(graph, library, cost_model)
    observation, info = env.reset(seed=0)
    rule = int(observation["counts"].argmax())
    observation, reward, terminated, truncated, info = env.step((rule, 0))

`_State` is everything that is known of one graph (its price, its matches); `_look` works it out, and a step moves from
one state to the next. What is padded and masked for the observation follows from the state.

The invariant: the k-th location of a rule is the k-th of its matches, so the counts carry the whole mask, and the same
graph, library and actions lead to the same graphs, hashes and rewards in any process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rlflow.cost.base import Cost, CostModel
from rlflow.cost.evaluator import Evaluator
from rlflow.environments.rewards import RewardConfig, reward_of
from rlflow.environments.transition import Transition
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.ir.structural_hash import structural_hash
from rlflow.representation.action_space import ActionSpace
from rlflow.representation.features import Featuriser
from rlflow.representation.graph_arrays import GraphArrays
from rlflow.representation.vocabulary import Vocabulary
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Matches, Rewriter
from rlflow.trajectory.record import Step, Trajectory

Observation = dict[str, np.ndarray]

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
class _State:
    """The state of an episode: a graph with its price, matches and arrays.

    counts: (R,) int64, matches of each rule that can be chosen. beyond: how many matches lie beyond L and cannot.
    """

    graph: Graph
    cost: Cost
    matches: Matches
    counts: np.ndarray
    beyond: int
    arrays: GraphArrays

    @cached_property
    def hash(self) -> str:
        """The structural hash, computed on first use."""
        return structural_hash(self.graph)


@dataclass(frozen=True, eq=False)
class _Taken:
    """An action that was carried out, the state that it led to, and its reward."""

    rule: str
    location: int
    state: _State
    reward: float


class SubstitutionEnv(gymnasium.Env[Observation, np.ndarray]):
    """Graph substitution as docs/spaces.md describes it.

    Observation: `op` (N,), `features` (N, F), `edges` (E, 2) of the graph, zero beyond `num_nodes` and `num_edges`;
    `counts` (R,) matches a rule, at most L; `rule_mask` (R + 1,) and `location_mask` (R, L), which follow from the
    counts; `cost` (1,) runtime in percent of the start. Action: (rule, location); rule R terminates.

    An action outside the masks leaves the graph as it is and earns `reward.invalid`. The horizon truncates. `info` has
    the graph's runtime, how many matches lie beyond L, and what a measured reward has cost so far. Graphs are
    written in `vocabulary`, today's by default: an agent that was trained earlier gives its own. `evaluator` is
    that of the search for which the agent plays.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        graph: Graph,
        library: Library,
        cost_model: CostModel,
        *,
        config: EnvironmentConfig | None = None,
        reward_config: RewardConfig | None = None,
        rewriter: Rewriter | None = None,
        evaluator: Evaluator | None = None,
        vocabulary: Vocabulary | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "ansi"):
            raise InputError(f"unknown render mode {render_mode!r}: choose 'ansi' or None")
        self.config = config or EnvironmentConfig()
        self.reward_config = reward_config or RewardConfig()
        self.reward = reward_of(self.reward_config)
        self.library = library
        self.render_mode = render_mode
        self.actions = ActionSpace(len(library.rules), self.config.max_locations)
        self._origin = graph
        self.evaluator = evaluator or Evaluator(rewriter or Rewriter(library.rules), cost_model)
        self._featuriser = Featuriser(vocabulary)

        nodes = len(graph.order) + len(graph.inputs)
        edges = sum(len(node.sources) for node in graph.nodes.values())
        self._max_nodes = self.config.max_nodes or max(_LEAST_NODES, 2 * nodes)
        self._max_edges = self.config.max_edges or max(_LEAST_EDGES, 2 * edges)
        self.action_space = spaces.MultiDiscrete([self.actions.num_rules + 1, self.actions.max_locations])
        self.observation_space: spaces.Space[Observation] = self._observation_space()  # type: ignore[assignment]

        self._state: _State | None = None
        self._start: _State | None = None
        self._taken: list[_Taken] = []
        self._num_steps = 0
        self._seed: int | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Go back to the graph, or to a graph up to `start_rewrites` random rewrites away from it.

        `options["start_rewrites"]` asks for exactly that many.
        """
        super().reset(seed=seed)
        state = self._look(self._origin)
        wanted = (options or {}).get("start_rewrites")
        if wanted is None and self.config.start_rewrites:
            wanted = int(self.np_random.integers(self.config.start_rewrites + 1))

        for _ in range(wanted or 0):
            choices = [match for found in state.matches for match in found]
            if not choices:
                break
            match = choices[int(self.np_random.integers(len(choices)))]
            state = self._look(self.evaluator.rewritten(state.graph, match))

        self._state = self._start = state
        self._taken = []
        self._num_steps = 0
        self._seed = seed
        return self._observation(), self._info()

    def step(self, action: Sequence[int] | np.ndarray) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Take the action (rule, location); an invalid one changes nothing and earns `reward.invalid`.

        Returns observation, reward in percent of the start, terminated, truncated, and info with `valid`.
        """
        rule, location = int(action[0]), int(action[1])
        before = self._now
        terminated = rule == self.actions.terminate
        valid = terminated or self.actions.is_valid(self.counts(), rule, location)
        truncated = not terminated and self._num_steps + 1 >= self.config.max_steps

        if valid and not terminated:
            self._state = self._look(self.evaluator.rewritten(before.graph, before.matches[rule][location]))

        if valid:
            states = [self._began, *(taken.state for taken in self._taken), self._now]
            earned = self.reward(Transition(states, terminated or truncated))
        else:
            earned = self.reward_config.invalid

        if not terminated:
            self._num_steps += 1
        if valid and not terminated:
            self._taken.append(_Taken(self.library.rules[rule].id, location, self._now, earned))
        return self._observation(), earned, terminated, truncated, self._info() | {"valid": valid}

    def counts(self) -> np.ndarray:
        """The matches of each rule that can be chosen, (R,) int64."""
        return self._now.counts

    def action_masks(self) -> np.ndarray:
        """Masks for stock MaskablePPO, (R + 1 + L,) bool: the valid rules, then the locations that some rule has.

        The two parts are independent, so stock masking still admits pairs that do not exist; they earn
        `reward.invalid`. `agents.pooled.factored_policy` masks the location given the rule instead.
        """
        counts = self.counts()
        widest = np.arange(self.actions.max_locations) < max(1, counts.max(initial=0))
        return np.concatenate([self.actions.rule_mask(counts), widest])

    @property
    def vocabulary(self) -> Vocabulary:
        """The names behind the numbers of `op` and `features`."""
        return self._featuriser.vocabulary

    def graph_arrays(self) -> GraphArrays:
        """The current graph, not padded."""
        return self._now.arrays

    def graph_hash(self) -> str:
        """The current graph's structural hash."""
        return self._now.hash

    @property
    def graph(self) -> Graph:
        return self._now.graph

    @property
    def cost(self) -> Cost:
        return self._now.cost

    @property
    def start_cost(self) -> Cost:
        return self._began.cost

    def trajectory(self) -> Trajectory:
        """The episode so far, without invalid actions, which changed nothing."""
        steps = tuple(Step(t.rule, t.location, t.state.hash, t.state.cost.runtime_ms, t.reward) for t in self._taken)
        start = self._began
        return Trajectory(
            start_hash=start.hash,
            start_runtime_ms=start.cost.runtime_ms,
            cost_model=self.evaluator.cost_model.name,
            library=self.library.hash,
            steps=steps,
            seed=self._seed,
            matching=self.evaluator.rewriter.matching,
        )

    def render(self) -> str | None:  # type: ignore[override]
        """The graph and its matches as text, with `render_mode="ansi"`; otherwise None."""
        if self.render_mode is None:
            return None

        state = self._now
        lines = [f"graph {state.hash}: {len(state.graph.order)} nodes, {state.cost.runtime_ms:.4f} ms"]
        for identifier in state.graph.order:
            node = state.graph.nodes[identifier]
            lines.append(f"{'/'.join(node.names)} = {node.op} {node.types[0]}")
        for rule, found in zip(self.library.rules, state.matches, strict=True):
            if found:
                lines.append(f"  {rule.name}: {len(found)} matches")
        return "\n".join(lines)

    @property
    def _now(self) -> _State:
        if self._state is None:
            raise InputError("call reset() before anything else")
        return self._state

    @property
    def _began(self) -> _State:
        if self._start is None:
            raise InputError("call reset() before anything else")
        return self._start

    def _look(self, graph: Graph) -> _State:
        """Price a graph and find its matches."""
        matches = self.evaluator.rewriter.matches(graph)
        found = np.array(matches.counts, dtype=np.int64)
        counts = np.minimum(found, self.actions.max_locations)
        beyond = int((found - counts).sum())
        return _State(graph, self.evaluator.cost(graph), matches, counts, beyond, self._featuriser.arrays(graph))

    def _info(self) -> dict[str, Any]:
        state = self._now
        own = {"runtime_ms": state.cost.runtime_ms, "matches_beyond_limit": state.beyond}
        return own | self.reward.figures()

    def _observation(self) -> Observation:
        arrays = self.graph_arrays()
        if arrays.num_nodes > self._max_nodes or len(arrays.edges) > self._max_edges:
            raise InputError(
                f"the graph has grown to {arrays.num_nodes} nodes and {len(arrays.edges)} edges; the observation holds "
                f"{self._max_nodes} and {self._max_edges}: raise environment.max_nodes and environment.max_edges"
            )

        counts = self.counts()
        start_ms = self._began.cost.runtime_ms
        percent = 100.0 * self._now.cost.runtime_ms / start_ms if start_ms else 100.0
        return {
            "op": _padded(arrays.op, self._max_nodes),
            "features": _padded(arrays.features, self._max_nodes),
            "edges": _padded(arrays.edges, self._max_edges),
            "num_nodes": np.array([arrays.num_nodes], dtype=np.int64),
            "num_edges": np.array([len(arrays.edges)], dtype=np.int64),
            "counts": counts.copy(),
            "rule_mask": self.actions.rule_mask(counts).astype(np.int8),
            "location_mask": self.actions.location_mask(counts).astype(np.int8),
            "cost": np.array([percent], dtype=np.float32),
        }

    def _observation_space(self) -> spaces.Dict:
        nodes, edges, rules = self._max_nodes, self._max_edges, self.actions.num_rules
        return spaces.Dict(
            {
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
        )


def _padded(array: np.ndarray, length: int) -> np.ndarray:
    padded = np.zeros((length, *array.shape[1:]), dtype=array.dtype)
    padded[: len(array)] = array
    return padded
