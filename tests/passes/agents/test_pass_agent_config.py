"""Settings of agents, and those that mean nothing."""

import pytest

from rlflow.errors import InputError
from rlflow.passes.agents.pass_agent_config import DreamtConfig, PassAgentConfig, config_of


def test_settings_that_mean_nothing_are_refused() -> None:
    assert PassAgentConfig(cost_features="both").cost_features == "both"
    with pytest.raises(InputError, match="cost_features must be none, value or both, not 'all'"):
        PassAgentConfig(cost_features="all")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least one environment"):
        PassAgentConfig(num_envs=0)


def test_an_option_is_read_by_its_algorithm() -> None:
    assert config_of({"algorithm": "ppo", "width": 8}) == PassAgentConfig("ppo", width=8)
    read = config_of(
        {"algorithm": "world_model", "episodes": 3, "world_model": {"latent": 4}, "dream": {}, "controller": {}}
    )
    assert isinstance(read, DreamtConfig)
    assert (read.episodes, read.world_model.latent) == (3, 4)
    with pytest.raises(InputError, match="unknown setting latents"):
        config_of({"algorithm": "world_model", "world_model": {"latents": 4}, "dream": {}, "controller": {}})
    with pytest.raises(InputError, match="at least one episode"):
        DreamtConfig(episodes=0)
