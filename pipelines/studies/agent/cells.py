"""The agent alone on one graph, as the experiment trains it, and searches beside it.

    row = carry_out(Training(...))              rollouts, world model, controller, one episode on the graph
    row = carry_out(SearchTask(...))
    document = summary({("predicted", "bert", "alone", "0"): row, ...}, max_steps=30)

The agent plays one episode of at most `max_steps` choices, by its most probable actions, from the original: no search
goes before it, and nothing is tried on the way. Two of its controllers are told: the best of the snapshots by a trial
on the graph each, and the last one. Untrained it goes by its prior of greedy search and of what experts take.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rlflow.agents.dream_training import train_in_dream
from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.agents.match_level.learning import LearningConfig, dream_of_graph
from rlflow.agents.match_level.real_env import real_return
from rlflow.agents.match_level.taught_guide import shipped
from rlflow.agents.selection import Trial
from rlflow.processes.token_process import TokenProcess
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from studies.agent.documents import Agent, Alone, Found, Methods
from studies.figures import Median, Spread, nested
from studies.search_task import SearchTask, carried_out
from studies.subject import Subject

ALONE = "alone"
Row = dict[str, Any]
Key = tuple[str, str, str, str]
"""Prices, graph, method and seed, which is empty for searches."""


@dataclass(frozen=True)
class Training:
    """A graph, prices, a seed, and the settings of the agent. pretrained: it goes on from the policy that ships."""

    subject: Subject
    seed: int
    pretrained: bool
    learning: LearningConfig


def carry_out(cell: Training | SearchTask) -> Row:
    """Train and play, or search."""
    return _searched(cell) if isinstance(cell, SearchTask) else _alone(cell)


def _searched(task: SearchTask) -> Row:
    found = carried_out(task)
    return {
        "saved_percent": found.result.improvement_percent,
        "rewrites": found.result.effort.rewrites,
        "wall_time_s": found.wall_time_s,
    }


def _alone(cell: Training) -> Row:
    started, rules = time.perf_counter(), library.load()
    known = shipped() if cell.pretrained else None
    begin = None if known is None else known.model
    vocabulary = None if begin is None else begin.arguments.vocabulary
    process = TokenProcess(cell.subject.graph(), Rewriter(rules.rules), cell.subject.prices(), vocabulary)
    dream = dream_of_graph(
        process, cell.subject.name, cell.learning, seed=cell.seed, library_hash=rules.hash, begin=begin
    )
    labelled = process.rewrites
    tried: list[Trial] = []

    def play(controller: MatchLevelController) -> Trial:
        return real_return(process, dream.model, controller, dream.config.max_steps)

    def judge(controller: MatchLevelController) -> Trial:
        tried.append(play(controller))
        return tried[-1]

    before = None if known is None else known.controller
    training = train_in_dream(dream, cell.learning.ppo, seed=cell.seed, begin=before, judge=judge)
    return {
        "saved_percent": play(training.controller).score_percent,
        "last_percent": tried[-1].score_percent,
        "untrained_percent": play(dream.untrained(cell.learning.ppo, seed=cell.seed)).score_percent,
        "dream_percent": training.score_percent,
        "rewrites": labelled + training.rewrites,
        "wall_time_s": time.perf_counter() - started,
    }


def summary(rows: Mapping[Key, Row], max_steps: int) -> Agent:
    """The rows by prices, graph and method, those of the agent over seeds; a graph that lacks either is left out."""
    by_method: dict[str, dict[str, dict[str, dict[str, Row]]]] = nested(rows)
    return {
        cost: {
            graph: _methods(found, max_steps) for graph, found in graphs.items() if len(found) > 1 and ALONE in found
        }
        for cost, graphs in by_method.items()
    }


def _methods(found: Mapping[str, Mapping[str, Row]], max_steps: int) -> Methods:
    trained = list(found[ALONE].values())
    searches = {name: Found(**row[""]) for name, row in found.items() if name != ALONE}
    saved = [row["saved_percent"] for row in trained]
    return Methods(
        alone=Alone(
            max_steps=max_steps,
            saved_percent=Spread.over(saved),
            last_percent=Spread.over([row["last_percent"] for row in trained]),
            untrained_percent=Spread.over([row["untrained_percent"] for row in trained]),
            dream_percent=Spread.over([row["dream_percent"] for row in trained]),
            rewrites=Median.over([row["rewrites"] for row in trained]),
            wall_time_s=Median.over([row["wall_time_s"] for row in trained]),
        ),
        searches=searches,
        best_known_percent=max([*saved, *(search.saved_percent for search in searches.values())]),
    )
