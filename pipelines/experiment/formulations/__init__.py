"""Formulations of rewriting as a problem for a world model, by the name that stands in `formulation` of the settings.

    formulation_of(stage.settings).trainer(stage, cost_model)

One is a module here, a subclass of `Formulation`, and a line below.
"""

from collections.abc import Mapping
from typing import Any

from experiment.formulations.formulation import Formulation
from experiment.formulations.graph_level import GraphLevel
from experiment.formulations.match_level import MatchLevel

FORMULATIONS: Mapping[str, Formulation] = {
    "graph_level": GraphLevel(),
    "match_level": MatchLevel(),
}


def formulation_of(settings: Mapping[str, Any]) -> Formulation:
    """Return the formulation that the settings name."""
    return FORMULATIONS[settings["formulation"]]
