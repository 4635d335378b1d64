"""Real steps of two agents: which are compared, in closed form, and by agents that hardly learn on a tiny graph."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from studies.sample_efficiency.cases import Case, run_case, summary
from studies.sample_efficiency.documents import SampleEfficiency
from studies.subject import Subject

from rlflow import schemas, zoo
from rlflow.agents.match_level.learning import LearningConfig
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig, RealEpisodesConfig
from rlflow.agents.token_collection import TokenCollectionConfig
from rlflow.cost.base import CostContext
from rlflow.onnx_io import save_model
from rlflow.processes.token_process import TokenProcess
from rlflow.rules import library
from rlflow.rules.matching.rewriter import Rewriter
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig, MatchLevelModelConfig

PPO = MatchLevelControllerConfig(total_steps=128, steps_per_update=8, batch_size=32, epochs=1, width=8)


def row(seed: int, free: tuple[float, int], points: list[tuple[float, int]], share: float | None) -> dict[str, Any]:
    """A row of one update, and of so many collections."""
    learned = [
        {
            "episodes": 1 + n,
            "interactions": steps,
            "trial_interactions": 0,
            "dream_percents": [found, 0.0],
            "trial_percents": [found, 0.0],
            "result_percent": found,
            "training_s": 1.0,
            "model_free_interactions": free[1] if free[0] >= found else None,
        }
        for n, (found, steps) in enumerate(points)
    ]
    return {
        "seed": seed,
        "greedy": {"result_percent": 2.5, "interactions": 40},
        "model_free": {
            "curve": [{"interactions": free[1], "score_percent": free[0]}],
            "result_percent": free[0],
            "interactions": free[1],
            "training_s": 1.0,
        },
        "world_model": {"points": learned, "interactions": 100 if share is not None else None},
        "share_of_interactions": share,
    }


def test_medians_are_over_seeds_and_of_those_that_did_as_well():
    """Of three seeds, two; results are those of the largest collection."""
    rows = {
        ("t5", "1"): row(1, (2.0, 1000), [(1.0, 50), (3.0, 100)], 0.1),
        ("t5", "0"): row(0, (1.0, 4000), [(0.0, 60), (2.0, 200)], 0.05),
        ("t5", "2"): row(2, (5.0, 2000), [(1.0, 70), (4.0, 300)], None),
        ("gpt2", "0"): row(0, (5.0, 2000), [(1.0, 70)], None),
    }
    document = summary(rows)
    schemas.validate(SampleEfficiency, document)
    found = document["t5"]
    assert [one["seed"] for one in found["seeds"]] == [0, 1, 2]
    assert found["as_good"] == 2
    assert found["share_of_interactions"]["value"] == pytest.approx(0.075)
    assert found["share_of_interactions"]["cases"] == 2
    assert (found["model_free_percent"]["value"], found["model_free_interactions"]["value"]) == (2.0, 2000)
    assert (found["world_model_percent"]["value"], found["world_model_interactions"]["value"]) == (3.0, 200)
    assert document["gpt2"]["share_of_interactions"] is None
    assert document["gpt2"]["greedy_percent"] == 2.5


def tiny_case(folder: Path, max_steps: int) -> Case:
    """Agents that hardly learn."""
    path = folder / "tiny_merge.onnx"
    save_model(zoo.build("tiny_merge"), path)
    return Case(
        subject=Subject(path, "analytic", CostContext()),
        seed=0,
        episodes=(3, 6),
        dreams=2,
        learning=LearningConfig(
            rollouts=TokenCollectionConfig(steps=4),
            world_model=MatchLevelModelConfig(
                encoder_width=8, encoder_layers=1, encoder_epochs=2, metric_width=4, survival_width=4, epochs=2
            ),
            dream=MatchLevelDreamConfig(num_envs=4, max_steps=max_steps, max_kinds=32),
            ppo=PPO,
        ),
        free=PPO,
        real=RealEpisodesConfig(num_envs=4, max_steps=max_steps, max_kinds=32),
    )


def test_a_tiny_case(tmp_path: Path):
    """Collections begin alike, so the larger one takes more; all steps until the best are counted."""
    found = run_case(tiny_case(tmp_path, max_steps=3))
    schemas.validate(SampleEfficiency, summary({("tiny_merge", "0"): found}))
    points, free = found["world_model"]["points"], found["model_free"]
    assert [point["episodes"] for point in points] == [3, 6]
    assert all(point["interactions"] > point["trial_interactions"] for point in points)
    assert [len(point["dream_percents"]) for point in points] == [2, 2], "dreams take no real step"
    assert all(point["trial_interactions"] <= 2 * 3 for point in points), "a trial of each"
    assert all(point["result_percent"] == max(point["trial_percents"]) for point in points)
    trials = np.cumsum([point["trial_interactions"] for point in points])
    collected = [point["interactions"] - tried for point, tried in zip(points, trials, strict=True)]
    assert collected[0] < collected[1]
    assert len(free["curve"]) == 1, "four updates between trials: one at the end"
    assert free["interactions"] == free["curve"][0]["interactions"] >= 3 * 8, "terminating is no step"
    reached = max(point["result_percent"] for point in points) >= free["result_percent"]
    assert (found["share_of_interactions"] is not None) == reached
    for point in points:
        known = point["model_free_interactions"]
        assert known == (free["interactions"] if free["result_percent"] >= point["result_percent"] else None)


def test_greedy_is_told_by_the_same_measure(tmp_path: Path):
    """As much as its best first rewrite saves, where one is all that anybody may do."""
    case = tiny_case(tmp_path, max_steps=1)
    found, rewriter = run_case(case)["greedy"], Rewriter(library.load().rules)
    saving = TokenProcess(case.subject.graph(), rewriter, case.subject.prices()).start().saving
    assert found["result_percent"] == pytest.approx(float(saving.max()), rel=1e-5)
    assert found["result_percent"] > 0
    assert 0 < found["interactions"]
