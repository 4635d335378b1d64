"""Graph substitution as a Gymnasium environment: choose a rule and a location, or stop.

    env = SubstitutionEnv(graph, library, cost_model)
    observation, info = env.reset(seed=0)
    rule = int(observation["counts"].argmax())
    observation, reward, terminated, truncated, info = env.step((rule, 0))

The invariant: the same graph, library and actions lead to the same graphs, hashes and rewards in any process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from rlflow.environments.process_env import ProcessEnv
from rlflow.environments.substitution_process import EnvironmentConfig, SubstitutionProcess, SubstitutionState
from rlflow.representation.action_space import ActionSpace
from rlflow.representation.vocabulary import Vocabulary


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
        `reward.invalid`. `agents.pooled.factored_policy` masks the location given the rule instead.
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
