"""The study of rewards: medians in closed form, and tiny trainings by an estimated and by a measured reward."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from studies.reward_study.cases import Case, TimingConfig, run_case, summary
from studies.reward_study.documents import RewardStudy
from studies.subject import Subject

from rlflow import schemas, zoo
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig, RealEpisodesConfig
from rlflow.cost.base import CostContext
from rlflow.environments import RewardConfig
from rlflow.onnx_io import save_model


def row(seed: int, ratio: float, training_s: float, noise_share: float | None) -> dict[str, Any]:
    latency = {
        "ratio": {"value": ratio, "ci95": [ratio, ratio]},
        "control": {"value": 1.0, "ci95": [0.99, 1.01]},
    }
    return {
        "seed": seed,
        "curve": [1.0],
        "interactions": 100,
        "training_s": training_s,
        "measurements": 10,
        "measuring_s": 5.0,
        "rewards_measured": 10,
        "rewards_noise": 0,
        "noise_share": noise_share,
        "estimated_percent": 3.0,
        "latency": {"as_written": latency, "deployed": latency},
    }


def test_medians_are_over_the_seeds_of_a_reward():
    document = summary(
        {
            ("g", "every_step", "1"): row(1, 1.3, 30.0, 0.5),
            ("g", "estimated", "0"): row(0, 1.1, 1.0, None),
            ("g", "every_step", "0"): row(0, 1.2, 10.0, None),
            ("g", "every_step", "2"): row(2, 1.0, 20.0, 0.7),
        }
    )
    schemas.validate(RewardStudy, document)
    found = document["g"]["every_step"]
    assert [one["seed"] for one in found["seeds"]] == [0, 1, 2]
    assert (found["latency_ratio_deployed"]["value"], found["latency_ratio_deployed"]["cases"]) == (1.2, 3)
    assert found["training_s"]["value"] == 20.0
    assert found["noise_share"]["value"] == pytest.approx(0.6)
    assert found["noise_share"]["cases"] == 2, "of those that measured anything"
    assert document["g"]["estimated"]["noise_share"] is None


@pytest.mark.study
def test_a_tiny_case(tmp_path: Path):
    """By either reward; the measured one counts its measurements, each of a graph that a step led to."""
    path = tmp_path / "tiny_chain.onnx"
    save_model(zoo.build("tiny_chain", rows=8, inner=2048, length=2), path)
    case = Case(
        subject=Subject(path, "analytic", CostContext()),
        seed=0,
        reward=RewardConfig("incremental"),
        ppo=MatchLevelControllerConfig(
            total_steps=64, steps_per_update=8, batch_size=32, epochs=1, updates_per_trial=1
        ),
        real=RealEpisodesConfig(num_envs=4, max_steps=2, max_kinds=16),
        timing=TimingConfig(rounds=3, runs_per_round=1),
    )
    estimated = run_case(case)
    measured = run_case(replace(case, reward=RewardConfig("end_to_end", rounds=5, runs_per_round=1)))
    schemas.validate(RewardStudy, summary({("g", "a", "0"): estimated, ("g", "b", "0"): measured}))
    assert (estimated["measurements"], estimated["noise_share"]) == (0, None)
    assert 0 < measured["measurements"] <= measured["interactions"]
    assert 0 < measured["measuring_s"] < measured["training_s"]
    assert 0 <= measured["noise_share"] <= 1
    assert len(measured["curve"]) == len(estimated["curve"]) == 2, "two updates"
