"""The model-free agent by a reward: tiny trainings on a graph that two rewrites make cheaper."""

from dataclasses import replace
from pathlib import Path

import pytest
from studies.paper.documents import Paper
from studies.paper.model_free import ModelFreeCell
from studies.paper.rows import summary
from studies.subject import Subject

from rlflow import schemas, zoo
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig, RealEpisodesConfig
from rlflow.cost.base import CostContext
from rlflow.environments import RewardConfig
from rlflow.onnx_io import save_model


@pytest.fixture
def cell(tmp_path: Path) -> ModelFreeCell:
    path = tmp_path / "chain.onnx"
    save_model(zoo.build("tiny_chain", rows=8, inner=2048, length=2), path)
    return ModelFreeCell(
        Subject(path, "analytic", CostContext()),
        "R5",
        seed=0,
        reward=RewardConfig("incremental"),
        ppo=MatchLevelControllerConfig(
            total_steps=64, steps_per_update=8, batch_size=32, epochs=1, updates_per_trial=1, terminate_bias=-9.0
        ),
        real=RealEpisodesConfig(num_envs=4, max_steps=2, max_kinds=16),
    )


@pytest.mark.slow
def test_a_training_is_told_and_counted(cell: ModelFreeCell):
    (name, row), *_ = cell.run().items()
    schemas.validate(Paper, summary({("g", name, 0): row}))
    assert len(row.curves["return_percent"]) == len(row.curves["trial_percent"]) == 2
    assert row.figures["training_evaluations"] >= 64, "a rewrite for each step at least, and those of the trials"


def test_snapshots_are_compared_by_the_reward_that_is_learned_from(cell: ModelFreeCell):
    """Minus the runtime at every step is below 0 whatever is saved; what is saved is not."""
    (by_runtime,) = replace(cell, reward=RewardConfig("runtime")).run().values()
    (by_saving,) = cell.run().values()
    assert max(by_runtime.curves["trial_percent"]) < 0 <= max(by_saving.curves["trial_percent"])
