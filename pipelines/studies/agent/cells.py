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
from functools import partial
from pathlib import Path
from typing import Any

from rlflow.agents.dream_training import train_in_dream
from rlflow.agents.match_level.chain import FittedWorld
from rlflow.agents.match_level.controller import MatchLevelController
from rlflow.agents.match_level.match_level_process import expert_of
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig
from rlflow.agents.match_level.real_env import real_return
from rlflow.agents.match_level.taught_guide import shipped
from rlflow.agents.selection import Trial
from rlflow.agents.token_collection import TokenCollectionConfig, collect_tokens
from rlflow.cost.base import CostContext
from rlflow.cost.models import COST_MODELS
from rlflow.environments.token_process import TokenProcess
from rlflow.onnx_io import from_onnx
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig, MatchLevelModelConfig
from studies.agent.documents import Agent, Alone, Found, Methods
from studies.figures import Median, Spread, nested
from studies.search_task import SearchTask, carried_out

ALONE = "alone"
Row = dict[str, Any]
Key = tuple[str, str, str, str]
"""Prices, graph, method and seed, which is empty for searches."""


@dataclass(frozen=True)
class Training:
    """A graph, prices, a seed, and the settings of the agent. pretrained: V goes on from the policy that ships."""

    model: Path
    cost_model: str
    context: CostContext
    seed: int
    pretrained: bool
    collection: TokenCollectionConfig
    world_model: MatchLevelModelConfig
    dream: MatchLevelDreamConfig
    ppo: MatchLevelControllerConfig


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
    begin = shipped().model if cell.pretrained else None
    cost_model = COST_MODELS.get(cell.cost_model)(cell.context)
    vocabulary = begin.arguments.vocabulary if begin is not None else None
    process = TokenProcess(from_onnx(cell.model), Rewriter(rules.rules), cost_model, vocabulary)
    rollouts = collect_tokens(
        process,
        cell.model.stem,
        cell.collection,
        seed=cell.seed,
        library_hash=rules.hash,
        expert=expert_of(begin) if begin is not None else None,
    ).rollouts
    world = FittedWorld.fit(rollouts, cell.world_model, seed=cell.seed, begin=begin)
    dream = world.dream(rollouts, cell.dream)
    labelled = process.rewrites
    play = partial(_played, process, world, cell.dream.max_steps)
    tried: list[Trial] = []

    def judge(controller: MatchLevelController) -> Trial:
        tried.append(play(controller))
        return tried[-1]

    training = train_in_dream(dream, cell.ppo, seed=cell.seed, judge=judge)
    return {
        "saved_percent": play(training.controller).score_percent,
        "last_percent": tried[-1].score_percent,
        "untrained_percent": play(dream.untrained(cell.ppo, seed=cell.seed)).score_percent,
        "dream_percent": training.score_percent,
        "rewrites": labelled + training.rewrites,
        "wall_time_s": time.perf_counter() - started,
    }


def _played(process: TokenProcess, world: FittedWorld, max_steps: int, controller: MatchLevelController) -> Trial:
    return real_return(process, world.model, controller, max_steps)


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
