"""Compare the agent alone, in one episode of a horizon, with every search of the experiment.

    python pipelines/study.py agent                              conf/study/agent.yaml
    python pipelines/study.py agent 'graphs=[bert]' 'seeds=[0]'  a part of it

The figures go to data/results/agent/metrics.json. A training or search that is done is kept until all are, so that a
study which was killed goes on where it was.
"""

from pathlib import Path
from typing import Any

from experiment.formulations.match_level.pretrained import pretrained
from omegaconf import DictConfig, OmegaConf
from tracking.factories import cost_context_of
from tracking.run import Run, numbers

from rlflow.agents.match_level.learning import LearningConfig
from rlflow.method import Budget
from studies.agent.cells import ALONE, Key, Row, Training, carry_out, summary
from studies.agent.documents import Agent
from studies.program import graph_files, open_study, options_of, study_program
from studies.published import publish
from studies.search_task import SearchTask
from studies.subject import Subject

RESULTS = Path("data/results/agent")


@study_program("agent")
def main(config: DictConfig) -> None:
    settings: Any = OmegaConf.to_container(config, resolve=True)
    with open_study("agent", settings) as study:
        if rows := study.rows(_cells(settings, study.folder), carry_out, _logged):
            document = summary(rows, settings["controller"]["dream"]["max_steps"])
            publish(RESULTS / "metrics.json", Agent, document, __file__)
            study.run.artifact(RESULTS)


def _cells(settings: Any, folder: Path) -> dict[Key, Training | SearchTask]:
    """The trainings and searches by prices, graph, method and seed."""
    option_of = options_of("agent")
    graphs = graph_files({graph: option_of("graph", graph) for graph in settings["graphs"]}, folder, processes=1)
    cells: dict[Key, Training | SearchTask] = {}
    for cost in settings["costs"]:
        kind, context = cost_context_of(option_of("cost", cost))
        for graph, model in graphs.items():
            subject = Subject(model, kind, context)
            for name, given in settings["evaluation"]["methods"].items():
                budget = Budget(time_s=given["time_s"], expansions=given["expansions"])
                cells[cost, graph, name, ""] = SearchTask(subject, given["method"], given["options"], budget)
            for seed in settings["seeds"]:
                cells[cost, graph, ALONE, str(seed)] = Training(
                    subject, seed, pretrained(settings) is not None, LearningConfig.read(settings)
                )
    return cells


def _logged(run: Run, key: Key, row: Row) -> str:
    """Log a row, and tell it in a few words."""
    _, _, _, seed = key
    run.log(int(seed or 0), numbers({"/".join(key[:3]): row}))
    return f"saves {row['saved_percent']:.2f} %"
