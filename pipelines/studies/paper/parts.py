"""The parts of the papers' evaluations: which cells each of them consists of, by conf/study/paper.yaml."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracking.factories import cost_context_of

from rlflow.agents.candidates.candidate_config import CandidateControllerConfig, CandidateNetworkConfig
from rlflow.environments.candidate_process import CandidateConfig
from rlflow.method import Budget
from rlflow.settings import read_config
from studies.paper.by_stages import DREAMT, JOBS, jobs_below
from studies.paper.candidates import CandidatesCell, CandidateTraining, ShapesCell
from studies.paper.frameworks import FrameworksCell
from studies.paper.rows import Cell
from studies.paper.searched import SearchCell
from studies.paper.unseen import UnseenCell
from studies.paper.walks import WalkCell
from studies.program import OptionOf, graph_files
from studies.reward_study.cases import TimingConfig
from studies.subject import Subject

CellKey = tuple[str, str, int]
"""Graph, the name of the cell among those of its graph, and seed."""
Entries = Iterator[tuple[CellKey, Cell]]


@dataclass(frozen=True)
class Study:
    """The materials of a part.

    settings: all of them. cost: the name of its prices in conf/cost. option_of: options of conf/ by group and name.
    folder: for the graphs' files.
    """

    settings: Any
    cost: str
    option_of: OptionOf
    folder: Path

    def subjects(self, sections: Mapping[str, Any]) -> dict[str, Subject]:
        """The graphs of sections `graph`, by their names, at the part's prices."""
        files = graph_files(sections, self.folder, self.settings["processes"])
        kind, context = cost_context_of(self.option_of("cost", self.cost))
        return {name: Subject(file, kind, context) for name, file in files.items()}

    def named(self, graphs: list[str]) -> dict[str, Subject]:
        """Graphs of conf/graph."""
        return self.subjects({graph: self.option_of("graph", graph) for graph in graphs})


def graphs(study: Study, part: Any) -> Entries:
    """Walks from each graph, for Table 1 and for the costs of its versions."""
    for (name, subject), seed in itertools.product(study.named(part["graphs"]).items(), part["seeds"]):
        yield (name, "walk", seed), WalkCell(subject, seed, part["steps"], part["episode_steps"])


def unseen(study: Study, part: Any) -> Entries:
    """The controllers that the stages have trained, in states that they have not seen.

    `InputError` where no job of sweep=paper has ended.
    """
    jobs = [job for job in jobs_below(JOBS) if job.agent == DREAMT]
    for (name, subject), job in itertools.product(study.named(part["graphs"]).items(), jobs):
        if (policy := job.policy(name)).is_dir():
            yield (name, "unseen", job.seed), UnseenCell(subject, job.seed, policy, tuple(part["rewrites"]))


def candidates(study: Study, part: Any) -> Entries:
    """X-RLflow's agent beside the searches."""
    subjects = study.named(part["graphs"])
    for name, subject in subjects.items():
        yield from _searches(study, part, name, subject)
    for seed, (name, subject) in itertools.product(part["seeds"], subjects.items()):
        training = _candidate_training(study, part)
        cell = CandidatesCell(subject, seed, training, part["proposals"], part["drawn_episodes"])
        yield (name, "x-rlflow", seed), cell


def shapes(study: Study, part: Any) -> Entries:
    """X-RLflow's agent on other shapes of the graph that it was trained on."""
    for family, dimensions in part["families"].items():
        section = study.option_of("graph", family)
        (dimension, sizes), *_ = dimensions.items()
        sections = {
            f"{family}_{dimension}_{size}": section | {"settings": section["settings"] | {dimension: size}}
            for size in sizes
        }
        first, *others = study.subjects(sections).items()
        for seed in part["seeds"]:
            cell = ShapesCell(first[1], seed, _candidate_training(study, part), dict(others))
            yield (family, "shapes", seed), cell


def frameworks(study: Study, part: Any) -> Entries:
    """The originals in PyTorch and in ONNX Runtime."""
    timing = read_config(TimingConfig, part["timing"])
    for (name, subject), seed in itertools.product(study.named(part["graphs"]).items(), part["seeds"]):
        yield (name, "frameworks", seed), FrameworksCell(subject, seed, timing, part["draws"])


PARTS: dict[str, Callable[[Study, Any], Entries]] = {
    "graphs": graphs,
    "unseen": unseen,
    "candidates": candidates,
    "shapes": shapes,
    "frameworks": frameworks,
}


def _searches(study: Study, part: Any, name: str, subject: Subject) -> Entries:
    """The searches of a part on one graph; none of them draws, so one seed says all."""
    for label, said in part["searches"].items():
        search = study.option_of("search", said["search"])
        budget = Budget(part["search_s"], said["expansions"])
        cell = SearchCell(subject, label, search["method"], search["options"], budget)
        yield (name, label, study.settings["seed"]), cell


def _candidate_training(study: Study, part: Any) -> CandidateTraining:
    agent = study.settings["agent"]
    return CandidateTraining(
        read_config(CandidateConfig, agent["episodes"] | part["episodes"]),
        read_config(CandidateNetworkConfig, agent["network"]),
        read_config(CandidateControllerConfig, agent["ppo"] | part["ppo"]),
    )
