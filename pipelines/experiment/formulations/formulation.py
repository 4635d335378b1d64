"""A formulation: how its rollouts are collected, its world model is fitted and its controllers are trained and played.

A stage gives what it knows of one graph, and finds inputs and outputs of that graph in the folders of its round.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from torch import nn
from tracking.share import Share
from tracking.stage import Stage

from experiment.formulations.controller_trainer import ControllerTrainer
from rlflow.agents.policy_search import PolicySearch, WorldModelSearch
from rlflow.cost.base import CostModel
from rlflow.errors import InputError
from rlflow.schemas.figures import Figure
from rlflow.trajectory import record
from rlflow.trajectory.record import Trajectory
from rlflow.world_model.epochs import OnEpoch
from rlflow.world_model.settings import read_config

OnEpisode = Callable[[int, float, float], None]
"""Called with the number of an episode, its return, and the improvement at its end, in percent."""


class Formulation(ABC):
    """What the stages of an experiment do with one graph.

    model_config: the settings of its world model. curves: units of the curves of a fit, by name; those in `drawn` are
    drawn.
    """

    model_config: ClassVar[type[Any]]
    curves: ClassVar[Mapping[str, str]]
    drawn: ClassVar[Sequence[str]]

    @abstractmethod
    def write_rollouts(self, stage: Stage, cost_model: CostModel, on_episode: OnEpisode) -> dict[str, Any]:
        """Write the rollouts of one graph, with those of the round before; returns the figures of the new ones."""

    def play(self, stage: Stage, cost_model: CostModel, on_episode: OnEpisode, share: Share) -> None:
        """Play a worker's share of the episodes, which `write_rollouts` then finds among the checkpoints."""
        raise InputError(
            "workers share episodes over match tokens alone: choose world_model=match_level, or one worker"
        )

    @abstractmethod
    def rollouts(self, stage: Stage) -> Any:
        """Return the rollouts that were written; their `episodes` are what is split for a fit."""

    @abstractmethod
    def fit(self, stage: Stage, rollouts: Any, config: Any, on_epoch: OnEpoch) -> nn.Module:
        """Fit V, then M, on the episodes that are not held out, and write the world model."""

    @abstractmethod
    def trust(
        self, stage: Stage, model: Any, rollouts: Any, training: Sequence[Any], held_out: Sequence[Any]
    ) -> dict[str, Any]:
        """Return figures of how far the dream can be trusted, on episodes that were not trained on."""

    @abstractmethod
    def trainer(self, stage: Stage, cost_model: CostModel) -> ControllerTrainer:
        """Return what controllers of one graph are trained and tried with."""

    @abstractmethod
    def policy(self, stage: Stage, cost_model: CostModel) -> WorldModelSearch:
        """Return the trained controller of one graph as a search, with the rules that it acts by."""

    def config(self, stage: Stage) -> Any:
        """Return the settings of the world model."""
        return read_config(self.model_config, stage.settings["world_model"])


def alone(search_of: Callable[[Any], PolicySearch]) -> Callable[[Any], PolicySearch]:
    """Return what plays a single episode of a controller's most probable actions, with no tries."""
    return lambda controller: replace(search_of(controller), sampled_episodes=0, candidates=1)


def ways_before(stage: Stage) -> list[Trajectory]:
    """Return the trajectories of the policy of the round before; none in the first round."""
    if stage.before is None:
        return []
    return record.load(stage.input(f"{stage.before}/policies/{stage.graph}/ways.jsonl"))


def improvements(at_end: Sequence[float], best: float) -> dict[str, Any]:
    """Return the figures of what episodes have improved, in percent: where they end, and at best anywhere."""
    mean = float(np.mean(at_end))
    return {
        "mean_improvement_percent": Figure(mean, 0.0, "do_nothing", len(at_end)).to_json(),
        "best_improvement_percent": Figure(best, 0.0, "do_nothing", len(at_end)).to_json(),
    }
