"""All that it takes to train controllers for one graph, and to try them on it, in either formulation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from rlflow.agents.dream_training import DreamTraining
from rlflow.agents.policy_search import Visits
from rlflow.agents.selection import Judge

DRAWN_VISITS = 2  # beside that of the most probable actions


@dataclass(frozen=True)
class ControllerTrainer:
    """A dream, the settings of a training, and what tells how good a controller is on the graph.

    train_in_dream: of the formulation. visits: the trajectories that a controller takes on the graph.
    real_score_percent: the return of an episode as long as a dream, the real side of the dream's score. random_percent:
    what a random agent saves, as the mean over `random_episodes`.
    """

    dream: Any
    config: Any
    train_in_dream: Callable[..., DreamTraining[Any]]
    judge: Judge[Any]
    visits: Callable[[Any], Visits]
    real_score_percent: Callable[[Any], float]
    random_percent: float
    random_episodes: int

    @property
    def rounds(self) -> int:
        """Updates of PPO, or generations, of a training."""
        rounds: int = self.config.rounds(self.dream.config.num_envs)
        return rounds

    @property
    def dream_steps(self) -> int:
        """Imagined steps of a training, at most: an evolution's episodes may end early."""
        settings = self.dream.config
        steps: int = self.rounds * settings.num_envs * self.config.steps_per_round(settings.max_steps)
        return steps

    def shortened(self, share: float, temperature: float) -> ControllerTrainer:
        """Return the same with a share of the training, in dreams of that temperature."""
        return replace(self, config=self.config.shortened(share), dream=self.dream.at(temperature))

    @property
    def train(self) -> Callable[..., DreamTraining[Any]]:
        """`train_in_dream`, which another process can be given: only a judge, if there is one, takes real steps."""
        return partial(self.train_in_dream, self.dream, self.config)
