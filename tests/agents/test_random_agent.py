"""Uniform over valid rules, then over the rule's locations; never an invalid action."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rlflow.agents.random_agent import RandomAgent
from rlflow.errors import InputError
from rlflow.representation.action_space import ActionSpace

SPACE = ActionSpace(3, 5)
DRAWS = 20_000


@given(
    st.lists(st.integers(0, 5), min_size=3, max_size=3),
    st.integers(0, 1000),
    st.sampled_from([None, 0.01, 1.0]),
    st.sampled_from([0.0, 0.3]),
)
def test_actions_are_always_valid(counts: list[int], seed: int, concentration: float | None, chance: float) -> None:
    rng, agent = np.random.default_rng(seed), RandomAgent(SPACE, chance, concentration)
    rule_weights = agent.draw_rule_weights(rng)
    for _ in range(5):
        assert SPACE.is_valid(np.array(counts), *agent.act(np.array(counts), rule_weights, rng))


def test_frequencies_are_uniform_over_rules_then_locations() -> None:
    """Five standard errors of 20,000 draws; a flat draw over (rule, location) pairs would be off by 60 of them."""
    rng, agent = np.random.default_rng(0), RandomAgent(SPACE, terminate_probability=0.1)
    drawn = [agent.act(np.array([1, 0, 4]), agent.draw_rule_weights(rng), rng) for _ in range(DRAWS)]
    for action, chance in {(3, 0): 0.1, (0, 0): 0.45, **{(2, k): 0.45 / 4 for k in range(4)}}.items():
        assert abs(drawn.count(action) / DRAWS - chance) < 5 * np.sqrt(chance * (1 - chance) / DRAWS)


def test_rule_weights_differ_by_episode_and_are_uniform_on_average() -> None:
    rng, agent = np.random.default_rng(0), RandomAgent(SPACE, concentration=1.0)
    weights = np.stack([agent.draw_rule_weights(rng) for _ in range(4000)])
    np.testing.assert_allclose(weights.mean(axis=0), 1 / 3, atol=0.02)
    assert weights.std(axis=0).min() > 0.1


def test_the_same_seed_draws_the_same() -> None:
    agent, counts = RandomAgent(SPACE, concentration=1.0), np.array([2, 3, 4])

    def walk(seed: int) -> list[tuple[int, int]]:
        rng = np.random.default_rng(seed)
        rule_weights = agent.draw_rule_weights(rng)
        return [agent.act(counts, rule_weights, rng) for _ in range(10)]

    assert walk(0) == walk(0) != walk(1)


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(InputError, match="from 0 to 1"):
        RandomAgent(SPACE, terminate_probability=2.0)
    with pytest.raises(InputError, match="positive"):
        RandomAgent(SPACE, concentration=0.0)
