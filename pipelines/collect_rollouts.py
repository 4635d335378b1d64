"""Collect episodes of a random agent in the real environment, for the world model to be fitted on."""

import numpy as np

from rlflow.agents.collection import CollectionConfig, collect
from rlflow.environments import EnvironmentConfig, RewardConfig, SubstitutionEnv
from rlflow.evaluation.results import Figure, write_results
from rlflow.representation.rollouts import Episode
from rlflow.tracking.factories import agent_rules, cost_model_of, graph_of, save_prices
from rlflow.tracking.stage import Stage, pipeline_stage


@pipeline_stage
def collect_rollouts(stage: Stage) -> None:
    settings = stage.settings
    cost_model = cost_model_of(settings["cost"], stage.input("data/rules/prices.json"))
    graph = graph_of(settings["graph"])
    rules = agent_rules(stage.input("data/rules"))
    env = SubstitutionEnv(
        graph,
        rules,
        cost_model,
        config=EnvironmentConfig(**settings["environment"]),
        reward_config=RewardConfig(**settings["reward"]),
    )

    config = CollectionConfig(**settings["rollouts"])
    stopwatch = stage.stopwatch
    with stage.progress("episodes") as on_progress:

        def on_episode(number: int, episode: Episode) -> None:
            stopwatch.tick()
            improvement = 100.0 - float(episode.cost[-1])
            stage.run.log(number, {"return": float(episode.reward.sum()), "improvement_percent": improvement})
            on_progress((number + 1) / config.episodes, f"{number + 1}, {improvement:.1f} %")

        collection = collect(env, config, seed=stage.seed, checkpoint=stage.checkpoint, on_episode=on_episode)
    wall_time_s = stopwatch.tick()

    folder = stage.output("data/rollouts")
    collection.save(folder, env)
    save_prices(cost_model, folder / "prices.json")

    episodes = collection.episodes
    applied = {int(rule) for episode in episodes for rule in episode.action[:, 0]} - {env.actions.terminate}
    available = np.max([episode.counts.max(axis=0) for episode in episodes], axis=0) > 0
    final = [100.0 - float(episode.cost[-1]) for episode in episodes]
    best = max(100.0 - float(episode.cost.min()) for episode in episodes)
    steps = sum(episode.num_steps for episode in episodes)
    metrics = {
        "episodes": len(episodes),
        "steps": steps,
        "distinct_graphs": len(collection.graphs),
        "terminated": sum(bool(episode.terminated[-1]) for episode in episodes),
        "truncated": sum(not episode.terminated[-1] for episode in episodes),
        "rules_available": int(available.sum()),
        "rules_applied": len(applied),
        "matches_beyond_limit": collection.matches_beyond_limit,
        "mean_improvement_percent": Figure(float(np.mean(final)), 0.0, "do_nothing", len(final)).to_json(),
        "best_improvement_percent": Figure(best, 0.0, "do_nothing", len(final)).to_json(),
        "steps_per_s": steps / wall_time_s,
        "wall_time_s": wall_time_s,
        "seed": stage.seed,
    }
    write_results(stage.metrics, {stage.graph: metrics})
    stage.report(metrics)


if __name__ == "__main__":
    collect_rollouts()
