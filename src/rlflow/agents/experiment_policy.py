"""The method "rlflow" by a policy that `dvc repro` has trained in a dream, on the graph that it was trained for."""

from __future__ import annotations

from pathlib import Path

from rlflow.agents.graph_level.controller import Controller
from rlflow.agents.graph_level.graph_level_search import GraphLevelSearch
from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.agents.match_level.match_level_search import MatchLevelSearch
from rlflow.agents.policy_search import PolicySearch
from rlflow.cost.base import CostModel
from rlflow.environments import EnvironmentConfig
from rlflow.errors import InputError
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.world_model.graph_level.model import GraphLevelModel, is_graph_level
from rlflow.world_model.match_level.model import MatchLevelModel


def experiment_policy(
    library: Library,
    rewriter: Rewriter,
    cost_model: CostModel,
    *,
    folder: Path | str = Path("data"),
    trained_on: str | None = None,
    horizon: int = 150,
    seed: int = 0,
) -> PolicySearch:
    """Make the search of a policy in `folder`, after greedy search.

    The folder holds `world_models` and `policies` by the graph of their training. trained_on: the name of that graph;
    None: the first by name. Its rewriter is the plain one, with which it was
    trained. An episode of a policy of the graph level has `horizon` rewrites at most, any other is as long
    as those of its training. `InputError` if there is no such policy.
    """
    folder = Path(folder)
    trained = sorted(path.name for path in folder.glob("policies/*/"))
    if trained and trained_on not in (None, *trained):
        raise InputError(f"no policy in {folder} was trained on {trained_on}: choose from {', '.join(trained)}")
    graph = trained_on or next(iter(trained), "")
    world, policy = folder / "world_models" / graph, folder / "policies" / graph
    try:
        if is_graph_level(world):
            parts = GraphLevelModel.load(world), Controller.load(policy)
            return _graph_level(library, cost_model, *parts, horizon, seed).after_greedy()
        model, controller = MatchLevelModel.load(world), MatchLevelController.load(policy)
    except InputError as error:
        raise InputError(
            f"no trained policy in {folder} ({error}): train one with `dvc repro`, name its folder with --policy, or "
            "choose --method backtracking"
        ) from None
    plain = Rewriter(library.rules)
    tokens = MatchLevelSearch(library, plain, cost_model, model, controller, seed=seed)
    return tokens.after_greedy()


def _graph_level(
    library: Library, cost_model: CostModel, model: GraphLevelModel, controller: Controller, horizon: int, seed: int
) -> GraphLevelSearch:
    """The policy of a world model of the graph level, which acts with those of its rules that the library has."""
    known = [i for i in model.arguments.rule_ids if any(r.id == i for r in library.rules)]
    rules = library.select(known)
    environment = EnvironmentConfig(max_locations=model.arguments.max_locations, max_steps=horizon)
    return GraphLevelSearch(rules, Rewriter(rules.rules), cost_model, model, controller, environment, seed=seed)
