"""Rollouts: how the episodes of one graph are played and written, in any formulation.

rollouts_of(stage.settings).write(stage, cost_model, on_episode)
"""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from tracking.share import Share
from tracking.stage import Stage

from experiment.formulations.episodes import OnEpisode
from experiment.formulations.graph_level import rollouts as graph_level
from experiment.formulations.match_level import rollouts as match_level
from rlflow.cost.base import CostModel
from rlflow.trajectory.state_graph import Way


class RolloutsPart(Protocol):
    """The functions of a formulation's module `rollouts`."""

    def write(self, stage: Stage, cost_model: CostModel, on_episode: OnEpisode) -> dict[str, Any]:
        """Write the rollouts of one graph, with those of the round before; returns the figures of the new ones."""

    def play(self, stage: Stage, cost_model: CostModel, on_episode: OnEpisode, share: Share) -> None:
        """Play a worker's share of the episodes, which `write` then finds among the checkpoints.

        `InputError` if workers cannot share them.
        """

    def ways(self, stage: Stage) -> Iterable[Way]:
        """Yield the states of each episode that was written for one graph."""


ROLLOUTS: Mapping[str, RolloutsPart] = {"graph_level": graph_level, "match_level": match_level}


def rollouts_of(settings: Mapping[str, Any]) -> RolloutsPart:
    """Return the rollouts of the formulation that the settings name."""
    return ROLLOUTS[settings["formulation"]]
