"""Optimise each graph by every method, check and time the results, and deliver the agent's model if it is faster, or
else the original.

The contenders are the searches of conf/evaluation, the policy that ships among them, and what was trained in the dream
of the graph: the controller alone in one episode, as in the paper, and the agent, which searches by it. All have the
same rules and prices. The controller alone is run untrained as well, as a baseline of what training adds; that is
neither checked nor timed.
"""

import dataclasses
import json
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
from experiment import comparison, figures, plot_rows
from experiment.comparison import Contender, Outcome
from experiment.delivery import OPTIMISED, Delivery, delivered, write_models
from experiment.documents.evaluate import Evaluate, RulesApplied, States
from experiment.formulations.controllers import controller_of
from experiment.results import read_results, write_results
from experiment.stage_summaries import of_evaluation, write_summary
from experiment.states import overlap, visited_states
from experiment.tables import evaluation_table
from tracking.factories import model_of, priced, save_prices
from tracking.registry import Price, register_onnx
from tracking.stage import Stage, pipeline_stage

from rlflow.agents.match_level.guide import shipped
from rlflow.agents.policy_search import WorldModelSearch
from rlflow.cost.base import CostModel
from rlflow.method import Budget
from rlflow.optimise.gate import GateConfig
from rlflow.optimise.methods import METHODS
from rlflow.optimise.source import Source
from rlflow.rules.library import Library
from rlflow.rules.library import load as load_library
from rlflow.runtime.isolation import Limits
from rlflow.show import box_picture
from rlflow.show.boxes import model_panels
from rlflow.show.picture_file import save

RESULTS = "data/results/evaluate"
AGENT, ALONE = "rlflow", "rlflow_alone"
Applied = dict[str, dict[str, int]]  # method -> rule -> times on the way to the method's graph


@pipeline_stage
def evaluate(stage: Stage) -> None:
    cost_model, keep_prices = priced(stage, stage.input("data/prices/collect_rollouts.json"))
    found = stage.each_graph(partial(_evaluate, cost_model=cost_model, keep_prices=keep_prices))
    metrics = {graph: each.rows for graph, each in found.items()}
    applied = {graph: _applied(each.outcomes) for graph, each in found.items()}
    states = {graph: each.states for graph, each in found.items()}
    save_prices(cost_model, stage.output("data/prices/evaluate.json"))

    write_results(stage.metrics, Evaluate, metrics)
    write_summary(stage.summary, of_evaluation(metrics))
    write_results(stage.output(f"{RESULTS}/rules_applied.json"), RulesApplied, applied)
    overlaps = {graph: overlap(visited) for graph, visited in states.items()}
    write_results(stage.output(f"{RESULTS}/states.json"), States, overlaps)
    for graph, visited in states.items():
        nx.write_graphml(visited, stage.output(f"data/states/{graph}.graphml"))
    stage.output(f"{RESULTS}/table.md").write_text(evaluation_table(metrics))
    plot_rows.write_rows(stage.output(f"{RESULTS}/latency_ratios.csv"), plot_rows.latency_ratios(metrics))
    plot_rows.write_rows(stage.output(f"{RESULTS}/savings.csv"), plot_rows.savings(metrics))
    library = load_library(stage.input("data/rules/library.jsonl"))
    named = {graph: _by_name(rules, library) for graph, rules in applied.items()}
    pictures = {
        "latency_ratios.png": figures.latency_ratios(metrics),
        "rules_applied.png": figures.rule_heat_map(named, AGENT),
        "states.png": figures.visited_states(states),
    }
    for name, picture in pictures.items():
        save(picture, stage.output(f"{RESULTS}/{name}"))
    stage.report(metrics)
    for name in ("table.md", *pictures):
        stage.run.artifact(stage.output(f"{RESULTS}/{name}"))


class Evaluated(NamedTuple):
    """Results on one graph: figures by method, the methods' outcomes, and all states that were visited."""

    rows: dict[str, Any]
    outcomes: dict[str, Outcome]
    states: nx.DiGraph


def _evaluate(stage: Stage, cost_model: CostModel, keep_prices: Callable[[], None]) -> Evaluated:
    """Let all methods compete on one graph, deliver the agent's model, and draw what it has changed."""
    settings = stage.settings
    alone = dataclasses.replace(
        controller_of(settings).policy(stage, cost_model), sampled_episodes=0, candidates=1, name=ALONE
    )

    limits = Limits(settings["evaluation"]["longest_s"])
    gate = GateConfig(**settings["evaluation"]["gate"], seed=stage.seed, limits=limits)
    source = Source.of(model_of(settings["graph"]))
    contest = comparison.contest_of(source, stage.scratch, gate)

    contenders = _contenders(stage, cost_model, alone)
    outcomes: dict[str, Outcome] = {}
    for number, (name, contender) in enumerate(contenders.items(), start=1):
        with stage.progress(f"{stage.graph}, method {number} of {len(contenders)}, {name}") as on_progress:
            others = tuple(outcomes.values())
            outcomes[name] = comparison.compete(contender, contest, stage.checkpoint, on_progress, keep_prices, others)

    with stage.progress(f"{stage.graph}, timing") as on_progress:
        timing = comparison.time_all(contest, outcomes, on_progress)
    rows = {comparison.ORIGINAL: comparison.original_row(contest, cost_model, timing)}
    rows |= {name: comparison.row(contest, outcome, cost_model, timing) for name, outcome in outcomes.items()}

    with stage.progress(f"{stage.graph}, untrained") as on_progress:
        baseline = alone.untrained().optimise(contest.graph, Budget(), on_progress)
    rows[ALONE]["untrained_percent"] = baseline.improvement_percent

    setting = settings["evaluation"]["deliver_if_faster"]
    delivery = delivered(timing.ratio(setting, AGENT), setting)
    rows[AGENT] |= delivery.to_json()
    folder = stage.output(f"data/models/{stage.graph}")
    folder.mkdir()
    model = write_models(delivery, outcomes[AGENT].result, source, folder)
    cost_ms = rows[AGENT if delivery.model == OPTIMISED else comparison.ORIGINAL]["cost_after_ms"]
    _register(stage, model, cost_ms, delivery)
    picture = folder / "before_and_after.svg"
    save(box_picture.draw(model_panels(contest.graph, outcomes[AGENT].result.best)), picture)
    stage.run.artifact(picture)
    return Evaluated(rows, outcomes, visited_states(stage, outcomes))


def _applied(outcomes: dict[str, Outcome]) -> dict[str, dict[str, int]]:
    """Return how often each method has applied each rule."""
    return {name: Counter(step.rule for step in each.result.trajectory.steps) for name, each in outcomes.items()}


def _register(stage: Stage, model: Path, cost_ms: float, delivery: Delivery) -> None:
    """Register the model that is delivered; it may be compared with others that were priced by the same settings."""
    price = Price(cost_ms, json.dumps(stage.settings["cost"], sort_keys=True))
    register_onnx(stage.run, model, f"rlflow-{stage.graph}", price, delivery.to_json())


def _by_name(applied: Applied, library: Library) -> Applied:
    """The same with the rules' names instead of their ids."""
    return {
        method: {library.get(rule).name: count for rule, count in rules.items()} for method, rules in applied.items()
    }


def _contenders(stage: Stage, cost_model: CostModel, alone: WorldModelSearch) -> dict[str, Contender]:
    """The methods of section `evaluation`, and what was trained on this graph, alone and as the agent's search."""
    contenders, seeds = {}, (stage.seed,)
    for name, given in stage.settings["evaluation"]["methods"].items():
        method = METHODS.get(given["method"])(alone.library, alone.rewriter, cost_model, **given["options"])
        contenders[name] = Contender(method, _budget(given), seeds, *_training(given["method"]), alias=name)

    agent = stage.settings["evaluation"]["agent"]
    search = controller_of(stage.settings).search(stage, cost_model, agent["options"])
    contenders[ALONE] = Contender(alone, Budget(), seeds, *_learning(stage))
    contenders[AGENT] = Contender(search, _budget(agent), seeds, *_learning(stage))
    return contenders


def _training(method: str) -> tuple[float, int]:
    """The seconds and the real steps that a method had cost before the experiment: of all of its lessons."""
    if method != "rlflow":
        return 0.0, 0
    trained_on = shipped().trained_on
    return trained_on["seconds"], trained_on["evaluations"]


def _learning(stage: Stage) -> tuple[float, int]:
    """The seconds and the real interactions of learning on this graph, without lessons of the policy that ships."""
    stages = ("collect_rollouts", "fit_world_model", "train_controller")
    files = (stage.input(f"data/results/{name}/metrics.json") for name in stages)
    rollouts, fit, training = (read_results(file)[stage.graph] for file in files)
    carried_out = rollouts.get("evaluations", rollouts["steps"])
    return (
        rollouts["wall_time_s"] + fit["training_s"] + training["training_s"],
        carried_out + training["real_interactions"],
    )


def _budget(section: dict[str, Any]) -> Budget:
    return Budget(time_s=section["time_s"], expansions=section["expansions"])


if __name__ == "__main__":
    evaluate()
