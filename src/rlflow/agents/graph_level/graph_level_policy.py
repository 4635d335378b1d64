"""The method "rlflow" by a policy of the paper's formulation, which `dvc repro` has trained on one graph."""

from __future__ import annotations

from pathlib import Path

from rlflow.agents.graph_level.controller import Controller
from rlflow.agents.graph_level.graph_level_search import GraphLevelSearch
from rlflow.cost.base import CostModel
from rlflow.environments import EnvironmentConfig
from rlflow.errors import InputError
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.world_model.graph_level.model import GraphLevelModel


def graph_level_policy(
    library: Library,
    rewriter: Rewriter,
    cost_model: CostModel,
    *,
    folder: Path,
    horizon: int = 150,
    seed: int = 0,
) -> GraphLevelSearch:
    """Make the search of a policy, after greedy search, by those of its rules that the library has.

    folder: `policies/<graph>` of an experiment, beside its `world_models/<graph>`. An episode has `horizon` rewrites at
    most. Its rewriter is the plain one, with which it was trained. `InputError` if there is no such policy.
    """
    try:
        model = GraphLevelModel.load(folder.parent.parent / "world_models" / folder.name)
        controller = Controller.load(folder)
    except InputError as error:
        raise InputError(
            f"no trained policy in {folder} ({error}): train one with `dvc repro`, name its folder with --policy, or "
            "choose --method backtracking"
        ) from None
    rules = library.select([i for i in model.arguments.rule_ids if any(r.id == i for r in library.rules)])
    environment = EnvironmentConfig(max_locations=model.arguments.max_locations, max_steps=horizon)
    search = GraphLevelSearch(rules, Rewriter(rules.rules), cost_model, model, controller, environment, seed=seed)
    return search.after_greedy()
