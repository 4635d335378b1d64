"""The study of the agent alone: rows become medians over seeds, and a tiny study runs to its end."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from studies.agent.cells import ALONE, Key, Row, summary
from studies.agent.documents import Agent

from rlflow.schemas import plain, validate

TINY = (
    "graphs=[tiny_merge]",
    "seeds=[0,1]",
    "costs=[analytic]",
    "rollouts.episodes=4",
    "rollouts.steps=4",
    "world_model.encoder_epochs=2",
    "world_model.epochs=2",
    "controller.dream.num_envs=4",
    "controller.ppo.total_steps=480",
)


def alone(saved: float, last: float) -> Row:
    percents = {"saved_percent": saved, "last_percent": last, "untrained_percent": 1.0, "dream_percent": 9.0}
    return {**percents, "rewrites": 100, "wall_time_s": 2.0}


def found(saved: float) -> Row:
    return {"saved_percent": saved, "rewrites": 7, "wall_time_s": 0.5}


def test_rows_of_seeds_are_told_together_beside_the_searches() -> None:
    rows: dict[Key, Row] = {("predicted", "bert", ALONE, str(seed)): alone(4.0 + seed, 3.0) for seed in range(3)}
    rows |= {("predicted", "bert", name, ""): found(saved) for name, saved in (("greedy", 4.1), ("best", 5.5))}
    document = plain(summary(rows, max_steps=30))
    validate(Agent, document)
    bert = document["predicted"]["bert"]
    assert bert["alone"]["max_steps"] == 30
    assert bert["alone"]["saved_percent"]["values"] == [4.0, 5.0, 6.0]
    assert bert["alone"]["saved_percent"]["value"] == 5.0
    assert bert["alone"]["last_percent"]["value"] == 3.0
    assert bert["searches"]["greedy"]["saved_percent"] == 4.1
    assert bert["best_known_percent"] == 6.0
    assert summary({key: row for key, row in rows.items() if key[2] != ALONE}, max_steps=30) == {"predicted": {}}
    rows["predicted", "bert", "best", ""] = found(6.5)
    assert summary(rows, max_steps=30)["predicted"]["bert"].best_known_percent == 6.5


@pytest.mark.study
def test_a_tiny_study(study: Callable[..., Path]) -> None:
    document: dict[str, Any] = json.loads((study("agent", *TINY) / "agent/metrics.json").read_text())
    methods = document["analytic"]["tiny_merge"]
    assert len(methods["alone"]["saved_percent"]["values"]) == 2
    assert methods["alone"]["saved_percent"]["value"] >= methods["alone"]["last_percent"]["value"]
    assert methods["searches"].keys() >= {"random", "greedy", "backtracking", "equality_saturation", "shipped_policy"}
    assert methods["searches"]["greedy"]["saved_percent"] > 0
