"""Publish what the six stages have found of the paper's agents: Figures 5 to 10, and Tables 2 and 3.

    python pipelines/all_stages.py --multirun experiment=paper sweep=paper               both formulations
    python pipelines/all_stages.py --multirun experiment=paper sweep=paper_model_free    the agent without a dream
    python pipelines/all_stages.py --multirun experiment=paper sweep=paper_temperatures  Table 3
    python pipelines/all_stages.py --multirun experiment=paper sweep=paper_rewards       Figure 5
    python pipelines/all_stages.py --multirun experiment=paper sweep=paper_reward_weights      its weights
    python pipelines/study.py paper.by_stages                                            data/results/paper

Jobs lie in multirun/all_stages, and all that have ended count. Searches that the jobs of several agents have in common
are told once. A method's row has the costs of its own training alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from experiment.results import read_results
from omegaconf import OmegaConf

from rlflow.errors import InputError
from rlflow.rules import library
from rlflow.runtime.session import SETTINGS
from studies.paper.documents import Paper
from studies.paper.rows import Key, Row, summary
from studies.published import publish

JOBS = Path("multirun/all_stages")
RESULTS = Path("data/results/paper")

DREAMT, MODEL_FREE, GRAPH_LEVEL = "dreamt", "model-free", "graph_level"
"""Agents: in the dream over match tokens, on the graph itself, and by the paper's own formulation."""
_METHODS: Mapping[str, Mapping[str, str]] = {
    DREAMT: {
        "original": "original",
        "greedy": "greedy",
        "backtracking": "taso",
        "equality_saturation": "equality_saturation",
        "shipped_policy": "shipped_policy",
        "rlflow": "rlflow",
        "rlflow_alone": "rlflow_alone",
    },
    MODEL_FREE: {"rlflow_alone": MODEL_FREE},
    GRAPH_LEVEL: {"backtracking": "taso by its rules", "rlflow_alone": GRAPH_LEVEL},
}
"""Which methods of the evaluation an agent's jobs tell of, and their names in the tables."""
_LEARNED = ("rlflow", "rlflow_alone")
_FIGURE_5: Mapping[str | float, str] = {0.8: "R1", "runtime": "R2", 0.1: "R3", 0.5: "R4", "incremental": "R5"}
"""The rewards of the figure by what tells them apart: the weight alpha, or else the kind."""
_WITH_CURVES = ("rlflow", GRAPH_LEVEL)
_CURVES = {
    "fit_world_model": ("encoder/saving", "memory/births", "memory/latent"),
    "train_controller": ("return_percent", "real_score_percent"),
}


@dataclass(frozen=True)
class PaperJob:
    """A job that has ended: the folder with its outputs."""

    folder: Path

    @cached_property
    def settings(self) -> Any:
        return OmegaConf.load(self.folder / ".hydra/config.yaml")

    @property
    def seed(self) -> int:
        seed: int = self.settings.seed
        return seed

    @property
    def agent(self) -> str:
        """One of the three agents."""
        if self.settings.formulation == GRAPH_LEVEL:
            return GRAPH_LEVEL
        return MODEL_FREE if "real" in self.settings.controller else DREAMT

    def policy(self, graph: str) -> Path:
        """Return the folder of the policy that was trained on a graph."""
        return self.folder / "data/policies" / graph

    def results(self, stage: str, file: str = "metrics.json") -> Any:
        """Return a results document of a stage by graph, empty if that did not run."""
        path = self.folder / "data/results" / stage / file
        return read_results(path) if path.is_file() else {}


def jobs_below(folder: Path) -> list[PaperJob]:
    """Return the jobs of a multirun that have ended. `InputError` if none has."""
    found = [PaperJob(note.parents[1]) for note in sorted(folder.glob("*/.finished/all_stages.json"))]
    if not found:
        raise InputError(
            f"no job has ended in {folder}: python pipelines/all_stages.py --multirun experiment=paper sweep=paper"
        )
    return found


def main() -> None:
    jobs = jobs_below(JOBS)
    parts = {"agents": _agents, "temperatures": _temperatures, "rewards": _rewards}
    for part, rows_of in parts.items():
        if found := dict(row for job in jobs for row in rows_of(job)):
            publish(RESULTS / f"{part}.json", Paper, summary(found), __file__)


def _agents(job: PaperJob) -> Iterator[tuple[Key, Row]]:
    """Yield the row of each method that a job tells of, on each graph."""
    applied = job.results("evaluate", "rules_applied.json")
    names = {rule.id: rule.name for rule in library.load().rules}
    for graph, methods in job.results("evaluate").items():
        training = _training(job, graph)
        for method, name in _METHODS[job.agent].items():
            learned = training if method in _LEARNED else None
            counts = {names.get(rule, rule): count for rule, count in applied[graph].get(method, {}).items()}
            curves = dict(_curves(job, graph)) if name in _WITH_CURVES else {}
            yield (graph, name, job.seed), Row(_figures(methods[method]) | (learned or {}), curves, counts)


def _training(job: PaperJob, graph: str) -> dict[str, float]:
    """The seconds and the real rewrites of learning on a graph: of the agent without a dream, those of C alone."""
    training = job.results("train_controller")[graph]
    seconds, rewrites = training["training_s"], training["real_interactions"]
    if job.agent != MODEL_FREE:
        rollouts = job.results("collect_rollouts")[graph]
        seconds += rollouts["wall_time_s"] + job.results("fit_world_model")[graph]["training_s"]
        rewrites += rollouts.get("evaluations", rollouts["steps"])
    return {"training_s": seconds, "training_evaluations": float(rewrites)}


def _figures(row: Mapping[str, Any]) -> dict[str, float]:
    """The figures of one method from its row of the evaluation (schema `evaluate`)."""
    figures = {
        "improvement_percent": row["improvement_percent"],
        "peak_memory_saved_percent": _saved_percent(row["peak_memory_ratio"]),
        "launches_saved_percent": _saved_percent(row["launches_ratio"]),
        "optimisation_s": row["optimisation_s"],
    }
    for setting in SETTINGS:
        name = f"latency_ratio_{setting}"
        low, high = row[f"{name}_ci95"]
        figures |= {name: row[name], f"{name}_low": low, f"{name}_high": high}
        figures[f"latency_{setting}_ms"] = row[f"latency_{setting}_ms"]
    return figures


def _saved_percent(ratio: float) -> float:
    return 100.0 * (1.0 - 1.0 / ratio)


def _curves(job: PaperJob, graph: str) -> Iterator[tuple[str, list[float]]]:
    for stage, names in _CURVES.items():
        curves = job.results(stage, "curves.json")[graph]
        yield from ((name, curves[name]["value"]) for name in names if name in curves)


def _temperatures(job: PaperJob) -> Iterator[tuple[Key, Row]]:
    """Yield the scores at each temperature in the dream and in reality."""
    prefix = "pooled tau" if job.agent == GRAPH_LEVEL else "tau"
    for graph, sweep in job.results("temperature_sweep").items():
        for point in sweep["points"]:
            scores = {"dream_percent": point["dream_score_percent"], "real_percent": point["real_score_percent"]}
            yield (graph, f"{prefix} {point['temperature']:g}", job.seed), Row(scores)


def _rewards(job: PaperJob) -> Iterator[tuple[Key, Row]]:
    """Yield what the agent has learned by its reward, of a job that ends there, and not with an evaluation."""
    if job.results("evaluate"):
        return
    for graph, training in job.results("train_controller").items():
        figures = {
            "improvement_percent": training["real_score_percent"]["value"],
            "training_evaluations": float(training["real_interactions"]),
        }
        yield (graph, name_of(job.settings.reward), job.seed), Row(figures, dict(_curves(job, graph)))


def name_of(reward: Any) -> str:
    """The name of a reward in Figure 5, or its weight in the grid beside it."""
    if reward.kind != "weighted":
        return _FIGURE_5[reward.kind]
    return _FIGURE_5.get(reward.alpha, f"alpha {reward.alpha:.1f}")
