"""Estimated and measured rewards beside each other: what an agent finds by either, and how long it learns.

    row = call_isolated(limits, run_case, case)                    one graph, reward and seed
    document = summary({("bert_tiny", "every_step", "0"): row})

The paper's section 3.1.4. The agent is the model-free one that points at match tokens: no world model stands between
the reward and what is learned from it. V, that of the policy that ships, only reads the tokens. The agents of one seed
differ in nothing but the reward, and in what the choice among their snapshots goes by, which is the same reward.

What an agent finds is the graph in which the episode of its most probable actions ends. It is timed against the
original in fresh sessions, after the training and apart from it, in both settings of ONNX Runtime, with the original
against itself as control.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from rlflow.agents.match_level.model_free import train_and_try
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig, RealEpisodesConfig
from rlflow.agents.match_level.real_env import final_graph
from rlflow.agents.match_level.taught_guide import shipped
from rlflow.environments.rewards import Reward, RewardConfig, reward_of
from rlflow.ir.graph import Graph
from rlflow.onnx_io import to_onnx
from rlflow.processes.token_process import TokenProcess
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.runtime.session import SETTINGS, Setting
from rlflow.runtime.timing.latency import compare_latency
from rlflow.schemas import plain
from studies.figures import MeasuredRatio, Median, nested
from studies.subject import Subject

Row = dict[str, Any]
Key = tuple[str, str, str]
"""Graph, reward and seed."""


@dataclass(frozen=True)
class TimingConfig:
    """The rounds of fresh sessions in which the result is timed, and the least runs of each."""

    rounds: int = 30
    runs_per_round: int = 10
    threads: int = 1


@dataclass(frozen=True)
class Case:
    """One training: on the graph of a model, priced by a cost model, by a reward and a seed."""

    subject: Subject
    seed: int
    reward: RewardConfig
    ppo: MatchLevelControllerConfig
    real: RealEpisodesConfig
    timing: TimingConfig


def run_case(case: Case) -> Row:
    """Train an agent, and time what it finds."""
    world_model = shipped().model
    graph, rewriter = case.subject.graph(), Rewriter(library.load().rules)
    process = TokenProcess(graph, rewriter, case.subject.prices(), world_model.arguments.vocabulary)
    reward = reward_of(case.reward)
    training = train_and_try(process, world_model, case.ppo, case.real, seed=case.seed, reward=reward)
    found = final_graph(process, world_model, training.controller, case.real.max_steps)
    return {
        "seed": case.seed,
        "curve": training.course("real_score_percent"),
        "interactions": training.rewrites,
        "training_s": training.seconds,
        **_measuring(reward),
        "estimated_percent": 100.0 - process.at(found).percent,
        "latency": {setting: _latency(graph, found, setting, case.timing) for setting in SETTINGS},
    }


def _measuring(reward: Reward) -> Row:
    """The measurements of a reward and the share of noise; nothing of one that is computed."""
    figures = {"measurements": 0, "measuring_s": 0.0, "rewards_measured": 0, "rewards_noise": 0} | reward.figures()
    asked = figures["rewards_measured"]
    return figures | {"noise_share": figures["rewards_noise"] / asked if asked else None}


def _latency(original: Graph, found: Graph, setting: Setting, timing: TimingConfig) -> Row:
    """The ratio of the original's latency to that of what was found, and to its own, with intervals."""
    model = to_onnx(original)
    times_ms = compare_latency(
        {"original": model, "original again": model, "found": to_onnx(found)},
        setting=setting,
        rounds=timing.rounds,
        runs_per_round=timing.runs_per_round,
        threads=timing.threads,
    )
    first = times_ms["original"]
    return {
        "ratio": MeasuredRatio.of(first, times_ms["found"]).to_json(),
        "control": MeasuredRatio.of(first, times_ms["original again"]).to_json(),
    }


def summary(rows: Mapping[Key, Row]) -> dict[str, Any]:
    """The rows by graph and reward, with medians over seeds and their intervals."""
    document: dict[str, Any] = plain(
        {
            graph: {reward: _over_seeds(found.values()) for reward, found in rewards.items()}
            for graph, rewards in nested(rows).items()
        }
    )
    return document


def _over_seeds(found: Iterable[Row]) -> dict[str, Any]:
    rows = sorted(found, key=lambda row: row["seed"])
    shares = [row["noise_share"] for row in rows if row["noise_share"] is not None]
    medians = {
        f"latency_ratio_{setting}": Median.over([row["latency"][setting]["ratio"]["value"] for row in rows])
        for setting in SETTINGS
    }
    medians |= {
        name: Median.over([row[name] for row in rows]) for name in ("training_s", "measuring_s", "measurements")
    }
    return {"seeds": rows, **medians, "noise_share": Median.over(shares) if shares else None}
