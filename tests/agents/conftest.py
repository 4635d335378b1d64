"""Small rollouts, one small world model fitted on them, and dreams of it."""

import pytest
import torch
from support.world_models import SMALL, small_dream, small_rollouts

from rlflow.representation.rollouts import Rollouts
from rlflow.world_model.dream_env import DreamEnv
from rlflow.world_model.model import WorldModel
from rlflow.world_model.trainer import fit_world_model


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def rollouts() -> Rollouts:
    return small_rollouts()


@pytest.fixture(scope="session")
def world_model(rollouts: Rollouts) -> WorldModel:
    return fit_world_model(rollouts, SMALL, seed=0)


@pytest.fixture
def dream(world_model: WorldModel, rollouts: Rollouts) -> DreamEnv:
    return small_dream(world_model, rollouts)
