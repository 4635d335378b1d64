"""The parts of the papers' evaluations: which cells each of them consists of, by conf/study/paper.yaml."""

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra import compose
from omegaconf import OmegaConf
from tracking.factories import cost_context_of

from rlflow.agents.candidates.candidate_config import CandidateControllerConfig, CandidateNetworkConfig
from rlflow.agents.collection import CollectionConfig
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.agents.match_level.learning import LearningConfig
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig, RealEpisodesConfig
from rlflow.environments import EnvironmentConfig, RewardConfig
from rlflow.environments.candidate_process import CandidateConfig
from rlflow.errors import InputError
from rlflow.method import Budget
from rlflow.search.rule_selection import SelectionConfig
from rlflow.settings import read_config
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig, GraphLevelModelConfig
from studies.paper.candidates import CandidatesCell, CandidateTraining, ShapesCell
from studies.paper.dreamt import DreamtCell
from studies.paper.frameworks import FrameworksCell
from studies.paper.latency import LatencyCell
from studies.paper.model_free import ModelFreeCell
from studies.paper.pooled import Control, GraphLevelCell
from studies.paper.rows import Cell
from studies.paper.searched import SearchCell
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
    folder: for the graphs' files. trajectories: the folder in which those of agents lie, by graph, agent and seed.
    """

    settings: Any
    cost: str
    option_of: OptionOf
    folder: Path
    trajectories: Path

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


def agents(study: Study, part: Any) -> Entries:
    """The searches, the model-free agent, and those that dream; all seeds of one before all of the next."""
    subjects, smaller = study.named(part["graphs"]), _smaller(study, part["graphs"])
    for name, subject in subjects.items():
        yield from _searches(study, part, name, subject)
    for seed, (name, subject) in itertools.product(part["seeds"], subjects.items()):
        yield (name, "rlflow", seed), _dreamt(study, part["dreamt"], subject, seed)
        reward = read_config(RewardConfig, {"kind": "incremental"})
        yield (name, "model-free", seed), _model_free(part["model_free"], subject, "model-free", seed, reward)
        yield (name, "graph_level", seed), _pooled(study, part, subject, smaller[name], seed)


def temperatures(study: Study, part: Any) -> Entries:
    """Scores in the dream and in reality, of one world model of either formulation at all temperatures."""
    smaller = _smaller(study, part["graphs"])
    for seed, (name, subject) in itertools.product(part["seeds"], study.named(part["graphs"]).items()):
        yield (name, "temperatures", seed), _dreamt(study, part["dreamt"], subject, seed)
        yield (name, "pooled", seed), _pooled(study, part, subject, smaller[name], seed)


def rewards(study: Study, part: Any) -> Entries:
    """The model-free agent by each reward."""
    subjects = study.named(part["graphs"])
    for seed, (name, subject), (label, said) in itertools.product(
        part["seeds"], subjects.items(), part["rewards"].items()
    ):
        yield (
            (name, label, seed),
            _model_free(part["model_free"], subject, label, seed, read_config(RewardConfig, said)),
        )


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


def latency(study: Study, part: Any) -> Entries:
    """The models that the agents of each seed have found; those of searches count for every seed.

    `InputError` where the part `agents` has left none of a graph.
    """
    if lacking := [name for name in part["graphs"] if not (study.trajectories / name).is_dir()]:
        raise InputError(f"nothing was found yet on {', '.join(lacking)}: run part=agents with these graphs first")
    for (name, subject), seed in itertools.product(study.named(part["graphs"]).items(), part["seeds"]):
        found = {
            agent.name: (one if (one := agent / f"{seed}.json").exists() else agent / "0.json").read_text()
            for agent in sorted((study.trajectories / name).iterdir())
        }
        timing = read_config(TimingConfig, part["timing"])
        yield (name, "latency", seed), LatencyCell(subject, seed, found, timing, part["draws"])


def frameworks(study: Study, part: Any) -> Entries:
    """The originals in PyTorch and in ONNX Runtime."""
    timing = read_config(TimingConfig, part["timing"])
    for (name, subject), seed in itertools.product(study.named(part["graphs"]).items(), part["seeds"]):
        yield (name, "frameworks", seed), FrameworksCell(subject, seed, timing, part["draws"])


PARTS: dict[str, Callable[[Study, Any], Entries]] = {
    "graphs": graphs,
    "agents": agents,
    "temperatures": temperatures,
    "rewards": rewards,
    "candidates": candidates,
    "shapes": shapes,
    "latency": latency,
    "frameworks": frameworks,
}


def _searches(study: Study, part: Any, name: str, subject: Subject) -> Entries:
    """The searches of a part on one graph; none of them draws, so one seed says all."""
    for label, search in _budgeted(study, part["searches"], part["search_s"]).items():
        yield (name, label, study.settings["seed"]), SearchCell(subject, label, *search)


def _budgeted(study: Study, searches: Any, search_s: float | None) -> dict[str, Control]:
    """Searches by name, each an option of conf/search with a budget."""
    found = {label: (study.option_of("search", said["search"]), said["expansions"]) for label, said in searches.items()}
    return {
        label: (search["method"], search["options"], Budget(search_s, expansions))
        for label, (search, expansions) in found.items()
    }


def _dreamt(study: Study, changed: Any, subject: Subject, seed: int) -> DreamtCell:
    """The agent that dreams, by the experiment's settings and what is changed of them."""
    settings, controller = study.settings, study.settings["controller"]
    sections = {name: settings[name] | changed[name] for name in ("rollouts", "world_model")}
    sections["controller"] = controller | {"ppo": controller["ppo"] | changed["ppo"]}
    return DreamtCell(
        subject=subject,
        seed=seed,
        learning=LearningConfig.read(sections),
        proposals=changed["proposals"],
        unseen=tuple(changed["unseen"]),
        temperatures=tuple(changed["temperatures"]),
        sweep_share=changed["sweep_share"],
    )


def _smaller(study: Study, graphs: list[str]) -> dict[str, Subject]:
    """The graphs on which rules are chosen for others, by the names of these."""
    sections = {graph: study.option_of("graph", graph) for graph in graphs}
    changed = {
        f"{graph}_smaller": section | {"settings": section["settings"] | section.get("selection", {})}
        for graph, section in sections.items()
    }
    return dict(zip(graphs, study.subjects(changed).values(), strict=True))


def _pooled(study: Study, part: Any, subject: Subject, smaller: Subject, seed: int) -> GraphLevelCell:
    """The paper's own formulation, by the experiment's settings for it and what is changed of them."""
    settings: Any = OmegaConf.to_container(compose("config", ["world_model=graph_level"]), resolve=True)
    changed = part["graph_level"]
    return GraphLevelCell(
        subject=subject,
        smaller=smaller,
        seed=seed,
        selection=SelectionConfig(**settings["rules"]["selection"]),
        environment=read_config(EnvironmentConfig, settings["environment"] | changed["environment"]),
        collection=read_config(CollectionConfig, settings["rollouts"] | changed["rollouts"]),
        world_model=read_config(GraphLevelModelConfig, settings["world_model"] | changed["world_model"]),
        dream=read_config(GraphLevelDreamConfig, settings["controller"]["dream"] | changed["dream"]),
        ppo=read_config(ControllerConfig, settings["controller"]["ppo"] | changed["ppo"]),
        temperatures=tuple(changed["temperatures"]),
        sweep_share=changed["sweep_share"],
        controls=_budgeted(study, changed["controls"], part.get("search_s")),
    )


def _model_free(changed: Any, subject: Subject, label: str, seed: int, reward: RewardConfig) -> ModelFreeCell:
    ppo = read_config(MatchLevelControllerConfig, changed["ppo"])
    return ModelFreeCell(subject, label, seed, reward, ppo, read_config(RealEpisodesConfig, changed["real"]))


def _candidate_training(study: Study, part: Any) -> CandidateTraining:
    agent = study.settings["agent"]
    return CandidateTraining(
        read_config(CandidateConfig, agent["episodes"] | part["episodes"]),
        read_config(CandidateNetworkConfig, agent["network"]),
        read_config(CandidateControllerConfig, agent["ppo"] | part["ppo"]),
    )
