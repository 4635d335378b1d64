"""The paper's own formulation as a cell: a tiny training at two temperatures."""

from pathlib import Path

import pytest
from studies.paper.documents import Paper
from studies.paper.pooled import GraphLevelCell
from studies.paper.rows import summary
from studies.subject import Subject

from rlflow import schemas, zoo
from rlflow.agents.collection import CollectionConfig
from rlflow.agents.graph_level.controller_config import ControllerConfig
from rlflow.cost.base import CostContext
from rlflow.environments import EnvironmentConfig
from rlflow.method import Budget
from rlflow.onnx_io import save_model
from rlflow.search.rule_selection import SelectionConfig
from rlflow.trajectory.record import Trajectory
from rlflow.world_model.graph_level.graph_level_config import GraphLevelDreamConfig, GraphLevelModelConfig


def test_it_is_scored_in_the_dream_and_in_reality(tmp_path: Path):
    """On a chain of which every rewrite saves, reality gives an agent no more than all of them do."""
    path = tmp_path / "chain.onnx"
    save_model(zoo.build("tiny_chain", rows=8, inner=2048, length=2), path)
    subject = Subject(path, "analytic", CostContext())
    cell = GraphLevelCell(
        subject=subject,
        smaller=subject,
        seed=0,
        selection=SelectionConfig(
            size=4, backtracking_expansions=4, random_rewrites=8, random_searches=1, chain_expansions=8
        ),
        environment=EnvironmentConfig(max_steps=4),
        collection=CollectionConfig(episodes=6),
        world_model=GraphLevelModelConfig(
            latent=4, encoder_width=8, encoder_epochs=1, encoder_steps=2, hidden=8, epochs=1
        ),
        dream=GraphLevelDreamConfig(num_envs=4, max_steps=4),
        ppo=ControllerConfig(total_steps=64, steps_per_update=8, batch_size=16, epochs=1),
        temperatures=(0.5, 1.0),
        sweep_share=1.0,
        controls={"greedy": ("greedy", {}, Budget())},
    )
    rows = cell.run()
    dreams = ["pooled tau 0.5", "pooled tau 1"]
    assert [*rows] == [*dreams, "graph_level", "greedy by its rules"]
    scores = [rows[name].figures["real_percent"] for name in dreams]
    assert all(0.0 <= score < 100.0 for score in scores)
    agent = rows["graph_level"]
    assert agent.figures["improvement_percent"] == pytest.approx(max(scores)), "of its dreams the best by a trial"
    assert len(Trajectory.from_json(agent.trajectory or "").steps) <= cell.environment.max_steps
    assert agent.figures["training_evaluations"] > 0 < agent.figures["training_s"]
    assert rows["pooled tau 1"].figures["dream_percent"] == pytest.approx(
        cell.run()["pooled tau 1"].figures["dream_percent"]
    ), "the same by the same seed"
    schemas.validate(Paper, summary({("chain", name, 0): row for name, row in rows.items()}))
