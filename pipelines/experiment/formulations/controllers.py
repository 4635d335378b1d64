"""Controllers: how those of one graph are trained in its dream and played on it, in any formulation.

controller_of(stage.settings).trainer(stage, cost_model)
"""

from collections.abc import Mapping
from typing import Any, Protocol

from tracking.stage import Stage

from experiment.formulations.controller_trainer import ControllerTrainer
from experiment.formulations.graph_level import controller as graph_level
from experiment.formulations.match_level import controller as match_level
from rlflow.agents.policy_search import WorldModelSearch
from rlflow.cost.base import CostModel
from rlflow.method import Method


class ControllerPart(Protocol):
    """The functions of a formulation's module `controller`."""

    def trainer(self, stage: Stage, cost_model: CostModel) -> ControllerTrainer:
        """Return what controllers of one graph are trained and tried with."""

    def policy(self, stage: Stage, cost_model: CostModel) -> WorldModelSearch:
        """Return the trained controller of one graph as a player of episodes, with the rules that it acts by."""

    def search(self, stage: Stage, cost_model: CostModel, options: Mapping[str, Any]) -> Method:
        """Return the search that goes by the trained controller of one graph, with its options."""


CONTROLLERS: Mapping[str, ControllerPart] = {"graph_level": graph_level, "match_level": match_level}


def controller_of(settings: Mapping[str, Any]) -> ControllerPart:
    """Return the controller of the formulation that the settings name."""
    return CONTROLLERS[settings["formulation"]]
