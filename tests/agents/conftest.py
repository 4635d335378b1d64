"""Small rollouts, one small world model fitted on them, and dreams of it."""

import pytest
import torch
from support.world_models import SMALL, small_dream, small_rollouts

from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.graph_level.dream_env import GraphLevelDreamEnv
from rlflow.world_model.graph_level.model import GraphLevelModel
from rlflow.world_model.graph_level.trainer import fit_world_model


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def rollouts() -> Rollouts:
    return small_rollouts()


@pytest.fixture(scope="session")
def world_model(rollouts: Rollouts) -> GraphLevelModel:
    return fit_world_model(rollouts, SMALL, seed=0)


@pytest.fixture
def dream(world_model: GraphLevelModel, rollouts: Rollouts) -> GraphLevelDreamEnv:
    return small_dream(world_model, rollouts)
