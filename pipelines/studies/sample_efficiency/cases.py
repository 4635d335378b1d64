"""Real steps that an agent needs: one that learns in a dream beside one that learns on the graph itself.

    row = call_isolated(limits, run_case, case)                    one graph and seed: both agents
    document = summary({("t5_last_token_two_layers", "0"): row})

The task is the same: the return of so many rewrites from the original, by the most probable actions. So are the
policy, its algorithm and what it sees; V reads the tokens for both, and costs the model-free agent nothing. Counted are
rewrites that are carried out: of the agent with a world model those that label its episodes, of the model-free agent
those that it learns from, and of both the trials. A match that looks like one whose price is known is labelled without
being carried out. Dreams cost no real step: the agent with a world model is trained in several, and what comes of each
is tried on the graph, once. Of both agents the best trial counts.

The agent with a world model learns from the first few episodes of a collection, then from more. Its first result that
is as good as the model-free agent's best is what the real steps of both are compared at; the other way round, each of
its results is told with the steps after which the model-free agent was as good. Doing nothing returns 0, and greedy,
which learns nothing, is told beside both.

The invariant: the smaller collections of a row are the beginnings of its largest.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import accumulate, islice
from typing import Any

from rlflow.agents.dream_training import train_in_dream
from rlflow.agents.match_level.learning import LearningConfig, dream_of_rollouts
from rlflow.agents.match_level.model_free import train_and_try
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig, RealEpisodesConfig
from rlflow.agents.match_level.real_env import real_return
from rlflow.agents.token_collection import collect_tokens, greedy_descent
from rlflow.processes.token_process import TokenProcess
from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.rules import library
from rlflow.rules.library import Library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.schemas import plain
from rlflow.world_model.match_level.model import MatchLevelModel
from studies.figures import Median, nested
from studies.sample_efficiency.documents import ShareOfInteractions
from studies.subject import Subject

Row = dict[str, Any]
Key = tuple[str, str]
"""Graph and seed."""

_ROUNDING_PERCENT = 1e-5


@dataclass(frozen=True)
class Case:
    """One graph and seed. The agent with a world model learns from so many `episodes` of the collection, in turn, and
    is trained in `dreams` dreams of each; the model-free agent's steps are those of `free`, its episodes `real`.
    """

    subject: Subject
    seed: int
    episodes: tuple[int, ...]
    dreams: int
    learning: LearningConfig
    free: MatchLevelControllerConfig
    real: RealEpisodesConfig


def run_case(case: Case) -> Row:
    """Train both agents; the model-free one sees through the V that was fitted on all episodes."""
    rules = library.load()
    process, rewrites = _process(case, rules), list[int]()
    rollouts = collect_tokens(
        process,
        case.subject.name,
        replace(case.learning.rollouts, episodes=max(case.episodes)),
        seed=case.seed,
        library_hash=rules.hash,
        on_episode=lambda *_: rewrites.append(process.rewrites),
    ).rollouts
    points, model, trials = [], None, 0
    for number in sorted(case.episodes):
        part = replace(rollouts, episodes=rollouts.episodes[:number])
        point, model = _dreamt(case, process, part)
        trials += point["trial_interactions"]
        point["interactions"] = rewrites[number - 1] + trials
        points.append({"episodes": number, **point})
    assert model is not None
    free = _free(case, process, model)
    for point in points:
        point["model_free_interactions"] = _steps_until(point["result_percent"], free["curve"])
    best = free["result_percent"]
    reached = [point["interactions"] for point in points if _is_as_good(point["result_percent"], best)]
    needed = min(reached, default=None)
    return {
        "seed": case.seed,
        "greedy": _greedy(_process(case, rules), case.real.max_steps),
        "model_free": free,
        "world_model": {"points": points, "interactions": needed},
        "share_of_interactions": needed / free["interactions"] if needed is not None else None,
    }


def _process(case: Case, rules: Library) -> TokenProcess:
    """The real process, of which nothing is known yet."""
    return TokenProcess(case.subject.graph(), Rewriter(rules.rules), case.subject.prices())


def _greedy(process: TokenProcess, max_steps: int) -> Row:
    """Follow greedy search for so many choices; returns what it saves, and how many rewrites it has tried."""
    way = list(islice(greedy_descent(process), max_steps + 1))
    return {"result_percent": way[0].percent - way[-1].percent, "interactions": process.rewrites}


def _dreamt(case: Case, process: TokenProcess, rollouts: TokenRollouts) -> tuple[Row, MatchLevelModel]:
    """Fit a world model to the rollouts, and train in its dreams; returns the best result, and the model."""
    started = time.perf_counter()
    dream = dream_of_rollouts(rollouts, case.learning, seed=case.seed)
    seeds = range(case.seed * case.dreams, (case.seed + 1) * case.dreams)
    trained = [train_in_dream(dream, case.learning.ppo, seed=seed) for seed in seeds]
    training_s = time.perf_counter() - started
    trials = [real_return(process, dream.model, one.controller, case.real.max_steps) for one in trained]
    found = {
        "dream_percents": [one.score_percent for one in trained],
        "trial_percents": [trial.score_percent for trial in trials],
        "trial_interactions": sum(trial.rewrites for trial in trials),
        "result_percent": max(trial.score_percent for trial in trials),
        "training_s": training_s,
    }
    return found, dream.model


def _free(case: Case, process: TokenProcess, model: MatchLevelModel) -> Row:
    """Train on the graph; returns the course of the trials, and the best of them with the steps until then."""
    training = train_and_try(process, model, case.free, case.real, seed=case.seed)
    tried = [update for update in training.updates if "real_score_percent" in update]
    trials = accumulate(trial.rewrites for trial in training.trials)
    curve = [
        {"interactions": int(update["rewrites"]) + taken, "score_percent": update["real_score_percent"]}
        for update, taken in zip(tried, trials, strict=True)
    ]
    best = max(point["score_percent"] for point in curve)
    return {
        "curve": curve,
        "result_percent": best,
        "interactions": _steps_until(best, curve),
        "training_s": training.seconds,
    }


def _steps_until(result_percent: float, curve: list[dict[str, float]]) -> float | None:
    """The real steps after which a trial of the curve was that good; None if none was."""
    return next((point["interactions"] for point in curve if _is_as_good(point["score_percent"], result_percent)), None)


def _is_as_good(percent: float, other_percent: float) -> bool:
    """The same savings add up to another last digit in another order."""
    return percent >= other_percent - _ROUNDING_PERCENT


def summary(rows: Mapping[Key, Row]) -> dict[str, Any]:
    """The rows by graph, with medians over seeds and their intervals."""
    document: dict[str, Any] = plain({graph: _over_seeds(found.values()) for graph, found in nested(rows).items()})
    return document


def _over_seeds(found: Iterable[Row]) -> dict[str, Any]:
    rows = sorted(found, key=lambda row: row["seed"])
    shares = [row["share_of_interactions"] for row in rows if row["share_of_interactions"] is not None]
    largest = [row["world_model"]["points"][-1] for row in rows]
    return {
        "seeds": rows,
        "greedy_percent": rows[0]["greedy"]["result_percent"],
        "model_free_percent": Median.over([row["model_free"]["result_percent"] for row in rows]),
        "model_free_interactions": Median.over([row["model_free"]["interactions"] for row in rows]),
        "world_model_percent": Median.over([point["result_percent"] for point in largest]),
        "world_model_interactions": Median.over([point["interactions"] for point in largest]),
        "as_good": len(shares),
        "share_of_interactions": ShareOfInteractions.over(shares) if shares else None,
    }
