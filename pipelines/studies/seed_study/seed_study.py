"""Repeat the learning chain (rollouts, world model, controller) from one seed, beside searches on the same prices.

    python pipelines/study.py seed_study --multirun experiment=two_layers seed=0,1,2,3,4

Each job is a child run of one MLflow run; together they fill data/results/seed_study/metrics.json. The rules are chosen
once and the prices are measured once, and all seeds share them.
"""

import os
import time
from functools import partial
from pathlib import Path
from typing import Any

import hydra
from experiment.results import read_results
from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_model_of, graph_of, save_prices
from tracking.provenance import source_tags
from tracking.run import Run, open_run
from tracking.store import open_store
from tracking.sweep import PARENT_VARIABLE

from rlflow.agents.collection import CollectionConfig, collect
from rlflow.agents.dream_training import train_in_dream
from rlflow.agents.graph_level.controller import Controller
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.graph_level.dream import GraphLevelDream
from rlflow.agents.graph_level.graph_level_search import GraphLevelSearch
from rlflow.agents.policy_search import judge_on
from rlflow.agents.scores import best_improvement_percent
from rlflow.cost.base import CostModel
from rlflow.environments import EnvironmentConfig, RewardConfig, SubstitutionEnv
from rlflow.ir.graph import Graph
from rlflow.method import Budget, OptimisationResult
from rlflow.rules import library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.search.backtracking import Backtracking
from rlflow.search.greedy import Greedy
from rlflow.search.rule_selection import RuleSet, SelectionConfig, select_rules
from rlflow.settings import read_config
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig, GraphLevelModelConfig
from rlflow.world_model.graph_level.trainer import fit_world_model
from studies.program import CONF
from studies.published import publish_part
from studies.seed_study.documents import SeedStudy

RESULTS = Path("data/results/seed_study/metrics.json")


@hydra.main(version_base="1.3", config_path=str(CONF), config_name="config")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    ((name, section),) = settings["graphs"].items()
    folder = Path(".checkpoints/seed_study") / name
    prices = folder / "prices.json"
    cost_model = cost_model_of(settings["cost"], prices if prices.exists() else None)
    graph = graph_of(section)
    rules = _rules(folder, graph, cost_model, settings)

    env = SubstitutionEnv(
        graph,
        rules,
        cost_model,
        config=read_config(EnvironmentConfig, settings["environment"]),
        reward_config=read_config(RewardConfig, settings["reward"]),
    )

    tags = {"stage": "seed_study", "graph": name, **source_tags(Path.cwd(), [])}
    parent = os.environ.get(PARENT_VARIABLE)
    run_name = f"seed_study/{name}/{settings['seed']}"
    with open_run(open_store(), run_name, parameters=settings, tags=tags, parent_id=parent) as run:
        row = _learned(env, graph, rules, cost_model, settings, run) | _searched(graph, rules, cost_model, settings)
        best_search = max(row["greedy_percent"], row["backtracking_percent"])
        row["share_of_best_search"] = row["rlflow_percent"] / best_search if best_search else 1.0
        run.log(0, {key: float(value) for key, value in row.items()})

    save_prices(cost_model, prices)
    _publish(name, row)


def _rules(folder: Path, graph: Graph, cost_model: CostModel, settings: Any) -> Library:
    """The agent's rules, chosen on first use and shared by all seeds."""
    shipped, chosen = library.load(), folder / "rule_set.json"
    if not chosen.exists():
        folder.mkdir(parents=True, exist_ok=True)
        select_rules(shipped, graph, cost_model, SelectionConfig(**settings["rules"]["selection"])).save(chosen)
    return RuleSet.load(chosen).rules(shipped)


def _learned(
    env: SubstitutionEnv, graph: Graph, rules: Library, cost_model: CostModel, settings: Any, run: Run
) -> dict[str, Any]:
    """The figures of the learning chain of one seed: rollouts, world model, controller, and its finds on the graph."""
    seed, started = settings["seed"], time.perf_counter()
    rollouts = collect(env, read_config(CollectionConfig, settings["rollouts"]), seed=seed).rollouts(env)

    fit = read_config(GraphLevelModelConfig, settings["world_model"])
    model = fit_world_model(rollouts, fit, seed=seed, on_epoch=run.log)

    dream = read_config(GraphLevelDreamConfig, settings["controller"]["dream"])
    ppo = read_config(ControllerConfig, settings["controller"]["ppo"])
    rewriter, tries = Rewriter(rules.rules), settings["evaluation"]["agent"]["options"]

    def optimiser(controller: Controller, episodes: int, candidates: int) -> GraphLevelSearch:
        return GraphLevelSearch(
            rules,
            rewriter,
            cost_model,
            model,
            controller,
            env.config,
            sampled_episodes=episodes,
            candidates=candidates,
            seed=seed,
        )

    judge = judge_on(graph, partial(optimiser, episodes=0, candidates=1))
    training = train_in_dream(GraphLevelDream.of(model, rollouts, dream), ppo, seed=seed, on_round=run.log, judge=judge)
    training_s = time.perf_counter() - started

    initial = Controller.untrained(training.controller.arguments, seed=seed)

    def find(controller: Controller, candidates: int) -> OptimisationResult:
        return optimiser(controller, tries["sampled_episodes"], candidates).optimise(graph, Budget())

    found = find(training.controller, tries["candidates"])
    alone = find(training.controller, candidates=1)
    found_untrained = find(initial, tries["candidates"])
    alone_untrained = find(initial, candidates=1)
    return {
        "seed": seed,
        "rlflow_percent": found.improvement_percent,
        "untrained_percent": found_untrained.improvement_percent,
        "controller_alone_percent": alone.improvement_percent,
        "untrained_alone_percent": alone_untrained.improvement_percent,
        "random_percent": best_improvement_percent(rollouts.episodes),
        "dream_score_percent": training.score_percent,
        "rules": len(rules.rules),
        "rules_that_fire": rollouts.num_rules_applied,
        "rollout_steps": rollouts.num_steps,
        "trial_steps": training.rewrites,
        "policy_steps": found.effort.rewrites,
        "training_s": training_s,
    }


def _searched(graph: Graph, rules: Library, cost_model: CostModel, settings: Any) -> dict[str, Any]:
    """The figures of the searches on the same rules and prices."""
    section, rewriter = settings["evaluation"]["methods"]["backtracking"], Rewriter(rules.rules)
    greedy = Greedy(rules, rewriter, cost_model).optimise(graph, Budget())
    search = Backtracking(rules, rewriter, cost_model, **section["options"])
    backtracking = search.optimise(graph, Budget(expansions=section["expansions"]))
    return {
        "greedy_percent": greedy.improvement_percent,
        "backtracking_percent": backtracking.improvement_percent,
        "backtracking_expansions": section["expansions"],
    }


def _publish(graph: str, row: dict[str, Any]) -> None:
    """Add the seed's row to the results, in place of an older one; rows of an older schema are left behind."""
    results = read_results(RESULTS) if RESULTS.exists() else {}
    rows = [r for r in results.get(graph, []) if r["seed"] != row["seed"] and r.keys() == row.keys()]
    publish_part(RESULTS, SeedStudy, results | {graph: sorted([*rows, row], key=lambda r: r["seed"])}, __file__)
