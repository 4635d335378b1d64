"""Graph substitution as a choice among graphs (X-RLflow): the next one of K candidates, or stop.

    env = CandidateEnv(graph, library, cost_model)
    observation, info = env.reset(seed=0)
    saving = observation["cost"][0] - observation["cost"][1:]
    observation, reward, terminated, truncated, info = env.step(int(saving.argmax()))

Observations have no padding: a space of graphs for the candidates, which are as many as there are. An agent of
Stable-Baselines3 trains beside it, in `rlflow.agents.candidates`, on the same process.

The invariant: the same graph, library, settings and actions lead to the same candidates, graphs and rewards in any
process.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from rlflow.cost.base import CostModel
from rlflow.environments.candidate_process import CandidateConfig, CandidateProcess, CandidateState
from rlflow.environments.rewards import RewardConfig, reward_of
from rlflow.environments.transition import Transition
from rlflow.errors import InputError
from rlflow.ir.graph import Graph
from rlflow.representation.candidate_arrays import CandidateWriter
from rlflow.representation.vocabulary import Vocabulary
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.trajectory.record import Step, Trajectory

Observation = dict[str, Any]


class CandidateEnv(gymnasium.Env[Observation, int]):
    """Graph substitution over candidates as docs/spaces.md describes it.

    Observation: `current`, a graph; `candidates`, at most K graphs; `cost` (K + 1,) float32, the prices of the current
    graph and of its candidates in percent of the start, 0 where there is no candidate; `action_mask` (K + 1,). Action:
    a candidate's number; K terminates. `action_masks` is what MaskablePPO asks for.

    An action outside the mask leaves the graph as it is and earns `reward.invalid`. The horizon truncates. `info` has
    the graph's runtime, the rewrites that are no candidates (`matches_beyond_limit`, `matches_alike`), `valid`, and
    what a measured reward has cost so far.
    """

    metadata: dict[str, Any] = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012

    def __init__(
        self,
        graph: Graph,
        library: Library,
        cost_model: CostModel,
        *,
        config: CandidateConfig | None = None,
        reward_config: RewardConfig | None = None,
        rewriter: Rewriter | None = None,
        vocabulary: Vocabulary | None = None,
        render_mode: str | None = None,
    ) -> None:
        if render_mode not in (None, "ansi"):
            raise InputError(f"unknown render mode {render_mode!r}: choose 'ansi' or None")
        self.config, self.library, self.render_mode = config or CandidateConfig(), library, render_mode
        rules = rewriter or Rewriter(library.rules)
        self.process = CandidateProcess(graph, rules, cost_model, self.config)
        self.reward = reward_of(reward_config or RewardConfig())
        self._writer = CandidateWriter(vocabulary)
        self.action_space: spaces.Space[int] = spaces.Discrete(self.config.max_candidates + 1)  # type: ignore[assignment]
        self.observation_space: spaces.Space[Observation] = self._observation_space()  # type: ignore[assignment]
        self._visited: list[CandidateState] = []
        self._taken: list[Step] = []
        self._num_steps = 0
        self._seed: int | None = None

    @property
    def terminate(self) -> int:
        """The action that ends an episode: K."""
        return self.config.max_candidates

    @property
    def vocabulary(self) -> Vocabulary:
        """The names behind the numbers of nodes and edges."""
        return self._writer.vocabulary

    @property
    def graph(self) -> Graph:
        """The current graph."""
        return self._now.graph

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Go back to the graph. Nothing is drawn: which rewrites are candidates is a matter of `config.seed`."""
        super().reset(seed=seed)
        self._visited = [self.process.start()]
        self._taken, self._num_steps, self._seed = [], 0, seed
        return self._observation(), self._info()

    def step(self, action: int) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Make a candidate the current graph, or stop; an invalid action changes nothing and earns `reward.invalid`."""
        before = self._now
        terminated = int(action) == self.terminate
        valid = terminated or 0 <= int(action) < len(before.candidates)
        self._num_steps += not terminated
        truncated = not terminated and self._num_steps >= self.config.max_steps

        if terminated:
            earned = self.reward(Transition([*self._visited, before], ended=True))
        elif valid:
            after = self.process.step(before, int(action))
            self._taken.append(self.process.recorded(before, int(action), after))
            self._visited.append(after)
            earned = self.reward(Transition(self._visited, truncated))
        else:
            earned = self.reward.config.invalid
        return self._observation(), earned, terminated, truncated, self._info() | {"valid": valid}

    def action_masks(self) -> np.ndarray:
        """(K + 1,) bool: the candidates that there are, and terminate."""
        mask = np.arange(self.terminate + 1) < len(self._now.candidates)
        mask[self.terminate] = True
        return mask

    def trajectory(self) -> Trajectory:
        """The episode so far, without invalid actions, which changed nothing."""
        evaluator, start = self.process.evaluator, self.process.start()
        return Trajectory(
            start_hash=start.hash,
            start_runtime_ms=self.process.start_ms,
            cost_model=evaluator.cost_model.name,
            library=self.library.hash,
            steps=tuple(self._taken),
            seed=self._seed,
            matching=evaluator.rewriter.matching,
        )

    def render(self) -> str | None:  # type: ignore[override]
        """The graph's size and price and what each candidate is, with `render_mode="ansi"`; otherwise None."""
        if self.render_mode is None:
            return None
        state = self._now
        lines = [f"graph {state.hash}: {len(state.graph.order)} nodes, {state.runtime_ms:.4f} ms"]
        for number, (candidate, saved_ms) in enumerate(zip(state.candidates, state.saving_ms, strict=True)):
            lines.append(f"  {number}: {candidate.match.rule.name} gives {candidate.hash}, saves {saved_ms:.4f} ms")
        if state.beyond:
            lines.append(f"  {state.beyond} more rewrites are beyond the limit")
        return "\n".join(lines)

    @property
    def _now(self) -> CandidateState:
        if not self._visited:
            raise InputError("call reset() before anything else")
        return self._visited[-1]

    def _info(self) -> dict[str, Any]:
        state = self._now
        own = {
            "runtime_ms": state.runtime_ms,
            "matches_beyond_limit": state.beyond,
            "matches_alike": state.alike,
        }
        return own | self.reward.figures()

    def _observation(self) -> Observation:
        state = self._now
        prices_ms = np.array([state.runtime_ms, *(state.runtime_ms - state.saving_ms)])
        cost = np.zeros(self.terminate + 1, np.float32)
        cost[: len(prices_ms)] = 100.0 * prices_ms / self.process.start_ms
        return {
            "current": self._instance(state.graph),
            "candidates": tuple(self._instance(graph) for graph in state.graphs),
            "cost": cost,
            "action_mask": self.action_masks().astype(np.int8),
        }

    def _instance(self, graph: Graph) -> spaces.GraphInstance:
        whole = self._writer.arrays(graph, [])
        forward = ~whole.backward
        return spaces.GraphInstance(
            nodes=self._writer.node_rows()[whole.look],
            edges=self._writer.edge_rows()[whole.edge[forward]],
            edge_links=whole.messages[forward],
        )

    def _observation_space(self) -> spaces.Dict:
        node = spaces.Box(0.0, np.inf, (self._writer.node_width,), np.float32)
        edge = spaces.Box(0.0, np.inf, (self._writer.edge_width,), np.float32)
        return spaces.Dict(
            {
                "current": spaces.Graph(node, edge),
                "candidates": spaces.Sequence(spaces.Graph(node, edge)),
                "cost": spaces.Box(0.0, np.inf, (self.terminate + 1,), np.float32),
                "action_mask": spaces.MultiBinary(self.terminate + 1),
            }
        )
