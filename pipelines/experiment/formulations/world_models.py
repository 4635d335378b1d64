"""World models: how one is fitted on rollouts, and how far its dream can be trusted, in any formulation.

world_model_of(stage.settings).fit(stage, rollouts, config, on_epoch)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from rlflow.plugins import Registry

if TYPE_CHECKING:
    from torch import nn
    from tracking.stage import Stage

    from rlflow.world_model.epochs import OnEpoch


class WorldModelPart(Protocol):
    """The functions of a formulation's module `world_model`.

    CURVES: units of the curves of a fit, by name. DRAWN: names of those that are drawn.
    """

    CURVES: Mapping[str, str]
    DRAWN: Sequence[str]

    def config(self, stage: Stage) -> Any:
        """Return the settings of the world model."""

    def rollouts(self, stage: Stage) -> Any:
        """Return the rollouts that were written; their `episodes` are what is split for a fit."""

    def fit(self, stage: Stage, rollouts: Any, config: Any, on_epoch: OnEpoch) -> nn.Module:
        """Fit V, then M, on the episodes that are not held out, and write the world model."""

    def trust(
        self, stage: Stage, model: Any, rollouts: Any, training: Sequence[Any], held_out: Sequence[Any]
    ) -> dict[str, Any]:
        """Return figures of how far the dream can be trusted, on episodes that were not trained on."""


WORLD_MODELS: Registry[WorldModelPart] = Registry(
    noun="formulation",
    group="rlflow.world_models",
    built_in={
        "graph_level": "experiment.formulations.graph_level.world_model",
        "match_level": "experiment.formulations.match_level.world_model",
    },
)


def world_model_of(settings: Mapping[str, Any]) -> WorldModelPart:
    """Return the world model of the formulation that the settings name."""
    return WORLD_MODELS.get(settings["formulation"])
