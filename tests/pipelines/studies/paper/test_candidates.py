"""X-RLflow's agent as cells: on one graph, and on another shape of it."""

from pathlib import Path

import pytest
from studies.paper.candidates import CandidatesCell, CandidateTraining, ShapesCell
from studies.paper.documents import Paper
from studies.paper.rows import summary
from studies.subject import Subject
from support.candidate_agents import EPISODES, NETWORK, PPO
from support.zoo_names import SMALL as SMALL_MODELS

from rlflow import schemas, zoo
from rlflow.cost.base import CostContext
from rlflow.onnx_io import save_model

TRAINING = CandidateTraining(EPISODES, NETWORK, PPO)


def subject(folder: Path, sequence: int) -> Subject:
    path = folder / f"bert_{sequence}.onnx"
    save_model(zoo.build("bert", **SMALL_MODELS["bert"] | {"sequence": sequence}), path)
    return Subject(path, "analytic", CostContext())


@pytest.mark.study  # a training
def test_the_agent_is_never_worse_than_its_policy_alone(tmp_path: Path):
    """Not for want of tries: with proposals, its episodes carry out more rewrites."""
    rows = CandidatesCell(subject(tmp_path, 4), 0, TRAINING, proposals=4, drawn_episodes=1).run()
    agent, alone, untrained = (rows[name].figures for name in ("x-rlflow", "x-rlflow alone", "x-rlflow untrained"))
    assert agent["improvement_percent"] >= alone["improvement_percent"] > 0
    assert agent["evaluations"] > alone["evaluations"]
    assert agent["training_evaluations"] == alone["training_evaluations"]
    assert untrained["training_evaluations"] == untrained["training_s"] == 0


@pytest.mark.study  # four trainings
def test_a_training_on_a_graph_and_one_on_another_shape(tmp_path: Path):
    """Where both shapes are one, what is transferred is what the special policy saves: the trainings are the same."""
    small, large = subject(tmp_path, 4), subject(tmp_path, 8)
    row = CandidatesCell(small, 0, TRAINING, proposals=1, drawn_episodes=0).run()["x-rlflow alone"]
    found = ShapesCell(small, 0, TRAINING, {"same": small, "larger": large}).run()
    assert row.figures["training_evaluations"] > PPO.total_steps / 2, "every candidate that is looked at counts"
    assert found["same"].figures["transferred_percent"] == found["same"].figures["special_percent"]
    assert found["same"].figures["special_percent"] == row.figures["improvement_percent"]
    assert found["larger"].figures["greedy_percent"] > 0
    rows = {("bert", name, 0): each for name, each in (found | {"x-rlflow alone": row}).items()}
    schemas.validate(Paper, summary(rows))
