"""The agent that dreams, as one cell: on a small BERT, all its rows at once."""

import pytest
from studies.paper.documents import Paper
from studies.paper.dreamt import DreamtCell
from studies.paper.rows import Row, summary
from studies.subject import Subject
from support.token_worlds import FEW, SMALL
from support.zoo_names import SMALL as SMALL_MODELS

from rlflow import schemas, zoo
from rlflow.agents.match_level.learning import LearningConfig
from rlflow.agents.match_level.pointer_config import MatchLevelControllerConfig
from rlflow.cost.base import CostContext
from rlflow.onnx_io import save_model
from rlflow.world_model.match_level.match_level_config import MatchLevelDreamConfig


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Row]:
    path = tmp_path_factory.mktemp("dreamt") / "bert.onnx"
    save_model(zoo.build("bert", **SMALL_MODELS["bert"]), path)
    cell = DreamtCell(
        subject=Subject(path, "analytic", CostContext()),
        seed=0,
        learning=LearningConfig(
            rollouts=FEW,
            world_model=SMALL,
            dream=MatchLevelDreamConfig(num_envs=4, max_steps=3),
            ppo=MatchLevelControllerConfig(
                total_steps=64, steps_per_update=8, batch_size=32, epochs=1, updates_per_trial=1
            ),
        ),
        proposals=4,
        unseen=(2,),
        temperatures=(0.5,),
        sweep_share=0.5,
    )
    return cell.run()


def test_it_tells_of_the_agent_of_unseen_states_and_of_temperatures(rows: dict[str, Row]):
    assert [*rows] == ["rlflow", "dreamt", "unseen 2", "tau 0.5"]
    schemas.validate(Paper, summary({("bert", name, 0): row for name, row in rows.items()}))


def test_the_agent_is_never_worse_than_greedy_search_nor_than_its_controller_alone(rows: dict[str, Row]):
    """It begins with greedy search, and its first episode is that of the controller alone."""
    assert rows["rlflow"].figures["improvement_percent"] >= rows["dreamt"].figures["improvement_percent"] - 1e-9
    assert rows["unseen 2"].figures["greedy_percent"] > 0


def test_what_training_took_is_counted(rows: dict[str, Row]):
    """Labels, and the trials of snapshots; the agent's own rewrites come on top."""
    figures = rows["rlflow"].figures
    assert figures["training_evaluations"] > 0 < figures["training_s"]
    assert figures["evaluations"] > rows["dreamt"].figures["evaluations"] > 0


def test_courses_have_a_point_for_each_epoch_and_update(rows: dict[str, Row]):
    curves = rows["rlflow"].curves
    assert len(curves["encoder/saving"]) == SMALL.encoder_epochs
    assert len(curves["memory/births"]) == SMALL.epochs
    assert len(curves["real_score_percent"]) == 2, "64 steps of 4 dreams, 8 in an update: two updates, a trial each"
