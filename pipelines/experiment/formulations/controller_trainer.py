"""All that it takes to train controllers for one graph, and to try them on it, in any formulation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from rlflow.agents.dream_training import Dream, DreamTraining, train_in_dream
from rlflow.agents.policy_search import PolicySearch, Visits, judge_on
from rlflow.agents.selection import Judge
from rlflow.ir.graph import Graph

DRAWN_VISITS = 2  # beside that of the most probable actions


@dataclass(frozen=True)
class ControllerTrainer:
    """A dream, the settings of a training, and what tells how good a controller is on the graph.

    player: makes a search that plays one episode of a controller's most probable actions. real_episode: plays one as
    long as a dream, the real side of the dream's score. random_percents: what random agents save, one for each episode.
    save: writes a controller with all that acts by it. begin: the controller that goes on learning; None: the seed
    draws one.
    """

    dream: Dream[Any]
    config: Any
    graph: Graph
    player: Callable[[Any], PolicySearch]
    real_episode: Judge[Any]
    random_percents: Sequence[float]
    save: Callable[[Any, Path], None]
    begin: Any = None

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

    @property
    def random_percent(self) -> float:
        """The mean that random agents save."""
        return float(np.mean(self.random_percents))

    @property
    def judge(self) -> Judge[Any]:
        """A judge that tries controllers on the graph."""
        return judge_on(self.graph, self.player)

    @property
    def train(self) -> Callable[..., DreamTraining[Any]]:
        """`train_in_dream`, which another process can be given: only a judge, if there is one, takes real steps."""
        return partial(train_in_dream, self.dream, self.config, begin=self.begin)

    def visits(self, controller: Any) -> Visits:
        """Return the trajectories that a controller takes on the graph."""
        return self.player(controller).visits(self.graph, DRAWN_VISITS)

    def shortened(self, share: float, temperature: float) -> ControllerTrainer:
        """Return the same with a share of the training, in dreams of that temperature."""
        return replace(self, config=self.config.shortened(share), dream=self.dream.at(temperature))


def alone(search_of: Callable[[Any], PolicySearch]) -> Callable[[Any], PolicySearch]:
    """Return what plays a single episode of a controller's most probable actions, with no tries."""
    return lambda controller: replace(search_of(controller), sampled_episodes=0, candidates=1)
