"""Graph substitution by classes of matches: rewrite all places that are alike, or stop.

    env = MatchClassEnv(graph, library, cost_model)
    observation, info = env.reset(seed=0)
    greedy = int(observation["choices"][:, CHOICE_FEATURES.index("saving_percent")].argmax())
    observation, reward, terminated, truncated, info = env.step(greedy)

Twelve layers that are alike are one decision, so that an optimisation takes as many at any depth. An action is one
number with a mask, as MaskablePPO takes it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from gymnasium import spaces

from rlflow.environments.match_class_process import MatchClassConfig, MatchClassProcess
from rlflow.environments.process_env import ProcessEnv
from rlflow.processes.token_process import MatchLevelState
from rlflow.representation.vocabulary import Vocabulary


class MatchClassEnv(ProcessEnv[MatchClassProcess]):
    """Graph substitution over classes of matches as docs/spaces.md describes it.

    Observation: by name, `environments.class_observations`. Action: the number of a class, all matches of which are
    rewritten one after another; K terminates. `info` has the `action_mask` (K + 1,) int8, and counts the classes that
    cannot be chosen as they lie beyond K, `choices_beyond_limit`. Nothing is drawn by a seed of `reset`.
    """

    formulation, settings = MatchClassProcess, MatchClassConfig

    @property
    def vocabulary(self) -> Vocabulary:
        """The names behind the numbers of an observed graph's nodes."""
        return self.process.observation.vocabulary

    @property
    def terminate(self) -> int:
        """The action that ends an episode: K."""
        return self.process.max_choices

    def choice(self, action: int) -> int | None:
        return None if int(action) == self.terminate else int(action)

    def action_masks(self) -> np.ndarray:
        """(K + 1,) bool: the classes that there are, and terminate."""
        return self.process.action_mask(self.state)

    def details(self) -> dict[str, Any]:
        beyond = len(self.state.classes.tokens) - len(self.process.choices(self.state))
        return {"action_mask": self.action_masks().astype(np.int8), "choices_beyond_limit": beyond}

    def lines(self) -> Iterator[str]:
        state: MatchLevelState = self.state
        rules, shown = self.library.rules, self.process.shown(state).tolist()
        for number, (match_class, saved) in enumerate(zip(shown, state.saving[shown], strict=True)):
            rule = rules[self.process.location(state, number).rule].name
            yield f"  {number}: {rule} at {state.classes.counts[match_class]} places, saves {saved:.4f} % at the first"

    def make_spaces(self) -> tuple[spaces.Discrete, spaces.Space[Any]]:
        return spaces.Discrete(self.terminate + 1), self.process.observation.space
