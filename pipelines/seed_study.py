"""Does it work for every seed? Rollouts, world model and controller from one seed, against searches on the same prices.

    python pipelines/seed_study.py --multirun experiment=two_layers seed=0,1,2,3,4

Each job is a child run; together they fill data/results/seed_study/metrics.json. Prices are taken once and shared.
"""

import os
import time
from pathlib import Path
from typing import Any

import hydra
from omegaconf import DictConfig, OmegaConf

from rlflow.agents.collection import CollectionConfig, collect
from rlflow.agents.config import ControllerConfig
from rlflow.agents.dream_training import best_improvement_percent, train_in_dream
from rlflow.agents.policy_optimiser import PolicyOptimiser
from rlflow.environments import EnvironmentConfig, RewardConfig, SubstitutionEnv
from rlflow.evaluation.results import read_results, write_results
from rlflow.optimiser import Budget
from rlflow.rules import library
from rlflow.rules.rewriter import Rewriter
from rlflow.search.backtracking import Backtracking
from rlflow.search.greedy import Greedy
from rlflow.search.rule_selection import RuleSet, SelectionConfig, select_rules
from rlflow.tracking.materials import cost_model_of, graph_of, save_prices
from rlflow.tracking.provenance import source_tags
from rlflow.tracking.run import open_run
from rlflow.tracking.store import open_store
from rlflow.tracking.sweep import PARENT_VARIABLE
from rlflow.world_model.config import DreamConfig, WorldModelConfig, read_config
from rlflow.world_model.trainer import fit_world_model

RESULTS = Path("data/results/seed_study/metrics.json")


@hydra.main(version_base="1.3", config_path="../conf", config_name="config")
def seed_study(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    seed, name = settings["seed"], settings["graph"]["name"]
    folder = Path(".checkpoints/seed_study") / name
    prices = folder / "prices.json"
    cost_model = cost_model_of(settings["cost"], prices if prices.exists() else None)
    graph, shipped = graph_of(settings["graph"]), library.load()
    chosen = folder / "rule_set.json"
    if not chosen.exists():
        folder.mkdir(parents=True, exist_ok=True)
        selection = SelectionConfig(**settings["rules"]["selection"])
        select_rules(shipped, graph, cost_model, selection).save(chosen)
    rules = RuleSet.load(chosen).rules(shipped)
    rewriter = Rewriter(rules.rules)
    environment = read_config(EnvironmentConfig, settings["environment"])
    tags = {"stage": "seed_study", "graph": name, **source_tags(Path.cwd(), [])}
    parent = os.environ.get(PARENT_VARIABLE)
    with open_run(open_store(), f"seed_study/{name}/{seed}", parameters=settings, tags=tags, parent_id=parent) as run:
        started = time.perf_counter()
        reward = read_config(RewardConfig, settings["reward"])
        env = SubstitutionEnv(graph, rules, cost_model, config=environment, reward_config=reward, rewriter=rewriter)
        rollouts = collect(env, read_config(CollectionConfig, settings["rollouts"]), seed=seed).rollouts(env)
        model = fit_world_model(
            rollouts, read_config(WorldModelConfig, settings["world_model"]), seed=seed, on_epoch=run.log
        )
        training = train_in_dream(
            model,
            rollouts,
            read_config(DreamConfig, settings["controller"]["dream"]),
            read_config(ControllerConfig, settings["controller"]["ppo"]),
            seed=seed,
            on_update=run.log,
        )
        training_s = time.perf_counter() - started
        alone, policy = (
            PolicyOptimiser(
                rules,
                rewriter,
                cost_model,
                model,
                training.controller,
                environment,
                sampled_episodes=settings["evaluation"]["sampled_episodes"],
                candidates=candidates,
                seed=seed,
            )
            for candidates in (1, settings["evaluation"]["candidates"])
        )
        found = policy.optimise(graph, Budget())
        searched = settings["evaluation"]["backtracking"]
        greedy = Greedy(rules, rewriter, cost_model).optimise(graph, Budget())
        backtracking = Backtracking(rules, rewriter, cost_model, alpha=searched["alpha"]).optimise(
            graph, Budget(expansions=searched["expansions"])
        )
        best_search = max(greedy.improvement_percent, backtracking.improvement_percent)
        row = {
            "seed": seed,
            "rlflow_percent": found.improvement_percent,
            "controller_alone_percent": alone.optimise(graph, Budget()).improvement_percent,
            "greedy_percent": greedy.improvement_percent,
            "backtracking_percent": backtracking.improvement_percent,
            "random_percent": best_improvement_percent(rollouts.episodes),
            "share_of_best_search": found.improvement_percent / best_search if best_search else 1.0,
            "dream_score_percent": training.score_percent,
            "rules": len(rules.rules),
            "rules_that_fire": sum(bool(m) for m in rewriter.matches(graph)),
            "rollout_steps": rollouts.num_steps,
            "policy_steps": found.interactions,
            "backtracking_expansions": searched["expansions"],
            "training_s": training_s,
        }
        run.log(0, {key: float(value) for key, value in row.items()})
    save_prices(cost_model, prices)
    _publish(name, row)


def _publish(graph: str, row: dict[str, Any]) -> None:
    """Add the seed's row to the results, in place of an older one."""
    results = read_results(RESULTS) if RESULTS.exists() else {}
    rows = [r for r in results.get(graph, []) if r["seed"] != row["seed"]]
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    write_results(RESULTS, results | {graph: sorted([*rows, row], key=lambda r: r["seed"])})


if __name__ == "__main__":
    seed_study()
