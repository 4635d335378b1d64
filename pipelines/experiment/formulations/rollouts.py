"""Rollouts: how the episodes of one graph are played and written, in any formulation.

rollouts_of(stage.settings).write(stage, cost_model, on_episode)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from rlflow.plugins import Registry

if TYPE_CHECKING:
    from tracking.share import Share
    from tracking.stage import Stage

    from experiment.formulations.episodes import OnEpisode
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


ROLLOUTS: Registry[RolloutsPart] = Registry(
    noun="formulation",
    group="rlflow.rollouts",
    built_in={
        "graph_level": "experiment.formulations.graph_level.rollouts",
        "match_level": "experiment.formulations.match_level.rollouts",
    },
)


def rollouts_of(settings: Mapping[str, Any]) -> RolloutsPart:
    """Return the rollouts of the formulation that the settings name."""
    return ROLLOUTS.get(settings["formulation"])
