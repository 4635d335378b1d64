"""Time the graphs that greedy search and equality saturation find against each other and against the original.

    python pipelines/study.py headroom.latency

The machine should be quiet: other work widens the intervals, and the control, the original against itself, shows it.
The figures go to data/results/headroom/latency.json. What was searched is kept until all graphs are timed.
"""

from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_model_of
from tracking.run import numbers

from rlflow.method import Budget
from rlflow.optimise.gate import GateConfig
from studies.headroom.documents import HeadroomLatency
from studies.latencies import contenders, latencies
from studies.program import open_study, options_of, study_program
from studies.published import publish

RESULTS = Path("data/results/headroom/latency.json")
METHODS = ("greedy", "equality_saturation")


@study_program("headroom")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    section, option_of = settings["latency"], options_of("headroom")
    gate = GateConfig(**section["gate"], seed=settings["seed"])
    searches = {name: option_of("search", name) for name in METHODS}
    budgets = {name: Budget(section["time_s"], search["expansions"]) for name, search in searches.items()}
    methods = contenders(searches, cost_model_of(option_of("cost", section["cost"])), budgets)
    graphs = {name: option_of("graph", name) for name in section["graphs"]}

    results: dict[str, Any] = {}
    with open_study("headroom_latency", settings) as study:
        for name, figures, _ in latencies(graphs, lambda _: methods, gate, study.folder):
            results[name] = figures
            study.run.log(0, numbers({name: figures}))
        publish(RESULTS, HeadroomLatency, results, __file__)
        study.run.artifact(RESULTS)
