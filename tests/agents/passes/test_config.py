"""Settings of agents, and those that mean nothing."""

import pytest

from rlflow.agents.passes.config import PassAgentConfig
from rlflow.errors import InputError


def test_settings_that_mean_nothing_are_refused() -> None:
    assert PassAgentConfig(cost_features="both").cost_features == "both"
    with pytest.raises(InputError, match="cost_features must be none, value or both, not 'all'"):
        PassAgentConfig(cost_features="all")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least one environment"):
        PassAgentConfig(num_envs=0)
