"""Algorithms by name, and settings that they do not have."""

import pytest
from support.pass_agents import trained

from rlflow.errors import InputError
from rlflow.passes.agents.algorithms import ALGORITHMS, algorithm_of


def test_the_papers_algorithms_are_there() -> None:
    assert {"ppo", "trpo", "a2c", "dqn"} < set(ALGORITHMS)
    assert not algorithm_of("dqn").actor_critic
    assert algorithm_of("trpo").actor_critic


def test_what_cannot_be_used_is_refused() -> None:
    with pytest.raises(InputError, match="dqn has no value function beside its policy"):
        trained("dqn", cost_features="value")
    with pytest.raises(InputError, match="ppo cannot be made with these settings"):
        trained("ppo", settings={"wings": 2})
    with pytest.raises(InputError, match="there is no pass-ordering algorithm 'luck'"):
        trained("luck", settings={})
