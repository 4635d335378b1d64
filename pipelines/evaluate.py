"""Optimise the graph by every method, check and time the results, and deliver the policy's model if it is faster.

The contenders are random search, greedy search, TASO's backtracking and the trained policy, on the same rules and
prices. The untrained policy is run as well, as a baseline of what training adds; it is neither checked nor timed.
"""

import dataclasses
import shutil
from collections import Counter
from functools import partial
from typing import Any

from rlflow.agents.controller import Controller
from rlflow.agents.dream_training import untrained
from rlflow.agents.policy_optimiser import PolicyOptimiser
from rlflow.cost.base import CostModel
from rlflow.environments import EnvironmentConfig
from rlflow.evaluation import comparison, figures
from rlflow.evaluation.comparison import Contender, Outcome
from rlflow.evaluation.results import read_results, write_results
from rlflow.evaluation.tables import markdown_table
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.methods import METHODS
from rlflow.optimiser import Budget
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.isolation import Limits
from rlflow.runtime.timing.statistics import beyond_noise
from rlflow.tracking.factories import agent_rules, cost_model_of, graph_of, model_file_of, save_prices
from rlflow.tracking.registry import register_onnx
from rlflow.tracking.stage import Stage, pipeline_stage
from rlflow.trajectory import record
from rlflow.world_model.model import WorldModel

RESULTS = "data/results/evaluate"


@pipeline_stage
def evaluate(stage: Stage) -> None:
    settings = stage.settings
    prices = stage.checkpoint / "prices.json"
    cost_model = cost_model_of(
        settings["cost"], prices if prices.exists() else stage.input("data/rollouts/prices.json")
    )
    rules = agent_rules(stage.input("data/rules"))
    policy = _policy(stage, rules, cost_model)
    graph = graph_of(settings["graph"])

    limits = Limits(settings["evaluation"]["longest_s"])
    gate = GateConfig(**settings["evaluation"]["gate"], seed=stage.seed, limits=limits)
    original = model_file_of(settings["graph"], stage.scratch / "original.onnx")
    keep_prices = partial(save_prices, cost_model, prices)

    contenders = _contenders(stage, rules, cost_model, policy)
    outcomes = {}
    for name, contender in contenders.items():
        with stage.progress(name) as on_progress:
            outcomes[name] = comparison.compete(
                contender, graph, original, stage.scratch, gate, stage.checkpoint, on_progress, keep_prices
            )

    with stage.progress("timing") as on_progress:
        timing = comparison.time_all(original, outcomes, gate, on_progress)
    rows = {comparison.ORIGINAL: comparison.original_row(graph, original, cost_model, timing, gate)}
    rows |= {name: comparison.row(graph, outcome, cost_model, timing) for name, outcome in outcomes.items()}

    with stage.progress("untrained") as on_progress:
        baseline = dataclasses.replace(policy, controller=untrained(policy.controller.arguments, seed=stage.seed))
        rows["rlflow"]["untrained_percent"] = baseline.optimise(graph, Budget(), on_progress).improvement_percent

    _publish(stage, rows, outcomes, rules)
    save_prices(cost_model, stage.output("data/prices/evaluate.json"))

    setting = settings["evaluation"]["deliver_if_faster"]
    measured = timing.ratio(setting, "rlflow")
    faster = beyond_noise(measured) and measured.value > 1.0
    optimised = stage.output("data/models/optimised.onnx")
    shutil.copyfile(outcomes["rlflow"].model if faster else original, optimised)
    register_onnx(stage.run, optimised, f"rlflow-{stage.graph}")


def _publish(stage: Stage, rows: dict[str, Any], outcomes: dict[str, Outcome], rules: Library) -> None:
    """Write the figures, the table, the pictures, and the trajectory to the policy's graph."""
    metrics = {stage.graph: rows}
    write_results(stage.metrics, metrics)
    stage.output(f"{RESULTS}/table.md").write_text(markdown_table(metrics))

    applied, named = {}, {}
    for name, outcome in outcomes.items():
        applied[name] = Counter(step.rule for step in outcome.result.trajectory.steps)
        named[name] = {rules.get(rule).name: count for rule, count in applied[name].items()}
    write_results(stage.output(f"{RESULTS}/rules_applied.json"), {stage.graph: applied})

    pictures = {
        "latency_ratios.png": figures.latency_ratios(metrics),
        "rules_applied.png": figures.rule_heat_map({stage.graph: named}, "rlflow"),
    }
    for name, picture in pictures.items():
        figures.save(picture, stage.output(f"{RESULTS}/{name}"))
    record.save([outcomes["rlflow"].result.trajectory], stage.output("data/models/optimised.jsonl"))
    stage.report(rows)
    for name in ("table.md", *pictures):
        stage.run.artifact(stage.output(f"{RESULTS}/{name}"))


def _policy(stage: Stage, rules: Library, cost_model: CostModel) -> PolicyOptimiser:
    """The trained controller as an optimiser."""
    settings = stage.settings["evaluation"]
    return PolicyOptimiser(
        rules,
        Rewriter(rules.rules),
        cost_model,
        WorldModel.load(stage.input("data/world_models")),
        Controller.load(stage.input("data/policies")),
        EnvironmentConfig(**stage.settings["environment"]),
        sampled_episodes=settings["sampled_episodes"],
        candidates=settings["candidates"],
        seed=stage.seed,
    )


def _contenders(stage: Stage, rules: Library, cost_model: CostModel, policy: PolicyOptimiser) -> dict[str, Contender]:
    """The methods of section `evaluation`, and the policy with what its training has cost."""
    contenders = {}
    for name, given in stage.settings["evaluation"]["methods"].items():
        method = METHODS.get(name)(rules, policy.rewriter, cost_model, **given["options"])
        contenders[name] = Contender(method, _budget(given), (stage.seed,))

    rollouts = _metrics(stage, "collect_rollouts")[stage.graph]
    fit, training = (_metrics(stage, name) for name in ("fit_world_model", "train_controller"))
    training_s = rollouts["wall_time_s"] + fit["training_s"] + training["training_s"]
    training_interactions = rollouts["steps"] + training["real_interactions"]
    contenders[policy.name] = Contender(policy, Budget(), (stage.seed,), training_s, training_interactions)
    return contenders


def _metrics(stage: Stage, name: str) -> Any:
    return read_results(stage.input(f"data/results/{name}/metrics.json"))


def _budget(section: dict[str, Any]) -> Budget:
    return Budget(time_s=section["time_s"], expansions=section["expansions"])


if __name__ == "__main__":
    evaluate()
