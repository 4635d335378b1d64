"""Small rollouts over match tokens of a real graph, and one small world model fitted on them."""

import pytest
from support.token_worlds import SMALL, small_token_rollouts

from rlflow.representation.token_rollouts import TokenRollouts
from rlflow.world_model.match_level.model import MatchLevelModel
from rlflow.world_model.match_level.trainer import fit_token_model


@pytest.fixture(scope="session")
def token_rollouts() -> TokenRollouts:
    return small_token_rollouts()


@pytest.fixture(scope="session")
def token_model(token_rollouts: TokenRollouts) -> MatchLevelModel:
    return fit_token_model(token_rollouts, SMALL, seed=0)
