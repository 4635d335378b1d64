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

from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces

from rlflow.environments.candidate_process import CandidateConfig, CandidateProcess, CandidateState
from rlflow.environments.process_env import ProcessEnv
from rlflow.representation.vocabulary import Vocabulary


class CandidateEnv(ProcessEnv[CandidateProcess]):
    """Graph substitution over candidates as docs/spaces.md describes it.

    Observation: `current`, a graph; `candidates`, at most K graphs; `cost` (K + 1,) float32, the prices of the current
    graph and of its candidates in percent of the start, 0 where there is no candidate; `action_mask` (K + 1,). Action:
    a candidate's number; K terminates. `action_masks` is what MaskablePPO asks for.

    Nothing is drawn by a seed of `reset`: which rewrites are candidates is a matter of `config.seed`. `info` counts the
    rewrites that are no candidates, `matches_beyond_limit` and `matches_alike`.
    """

    formulation, settings = CandidateProcess, CandidateConfig

    @property
    def vocabulary(self) -> Vocabulary:
        """The names behind the numbers of nodes and edges."""
        return self.process.writer.vocabulary

    @property
    def terminate(self) -> int:
        """The action that ends an episode: K."""
        return self.config.max_candidates

    def choice(self, action: int) -> int | None:
        return None if int(action) == self.terminate else int(action)

    def action_masks(self) -> np.ndarray:
        """(K + 1,) bool: the candidates that there are, and terminate."""
        return self.process.action_mask(self.state)

    def details(self) -> dict[str, Any]:
        return {"matches_beyond_limit": self.state.beyond, "matches_alike": self.state.alike}

    def lines(self) -> Iterator[str]:
        state: CandidateState = self.state
        for number, (candidate, saved_ms) in enumerate(zip(state.candidates, state.saving_ms, strict=True)):
            yield f"  {number}: {candidate.match.rule.name} gives {candidate.hash}, saves {saved_ms:.4f} ms"
        if state.beyond:
            yield f"  {state.beyond} more rewrites are beyond the limit"

    def make_spaces(self) -> tuple[spaces.Discrete, spaces.Dict]:
        writer, actions = self.process.writer, self.terminate + 1
        node = spaces.Box(0.0, np.inf, (writer.node_width,), np.float32)
        edge = spaces.Box(0.0, np.inf, (writer.edge_width,), np.float32)
        observed: dict[str, spaces.Space[Any]] = {
            "current": spaces.Graph(node, edge),
            "candidates": spaces.Sequence(spaces.Graph(node, edge)),
            "cost": spaces.Box(0.0, np.inf, (actions,), np.float32),
            "action_mask": spaces.MultiBinary(actions),
        }
        return spaces.Discrete(actions), spaces.Dict(observed)
