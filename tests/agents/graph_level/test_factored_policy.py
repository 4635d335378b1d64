"""The policy is p(rule) p(location | rule), exactly, when it samples and when it is updated."""

import math

import numpy as np
import pytest
import torch
from gymnasium import spaces
from support.gradients import check_gradients
from torch import Tensor

from rlflow.agents.graph_level.factored_policy import FactoredDistribution, FactoredPolicy
from rlflow.world_model.graph_level.latent_state import ObservationLayout

R, L = 3, 4
LAYOUT = ObservationLayout(latent=2, hidden=3, num_rules=R)


def policy(bias: float = -2.0) -> FactoredPolicy:
    """Heads far from uniform, so that a forgotten mask or rule would show."""
    torch.manual_seed(0)
    built = FactoredPolicy(
        spaces.Box(-np.inf, np.inf, (LAYOUT.size,), np.float32),
        spaces.MultiDiscrete([R + 1, L]),
        lambda _: 1e-3,
        layout=LAYOUT,
        width=16,
        rule_embedding=4,
        terminate_bias=bias,
    )
    for parameter in built.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return built


def observations(counts: list[list[int]]) -> Tensor:
    generator = torch.Generator().manual_seed(1)
    size = len(counts)
    parts = (
        torch.randn(size, 2, generator=generator),
        torch.rand(size, 3, generator=generator),
        torch.tensor(counts).float(),
        100 * torch.rand(size, 1, generator=generator),
    )
    return torch.cat(parts, dim=-1)


COUNTS = [[1, 0, 4], [0, 0, 0], [4, 4, 4], [0, 2, 0]]
EVERY_ACTION = torch.tensor([[rule, location] for rule in range(R + 1) for location in range(L)])


def joint(built: FactoredPolicy, observation: Tensor) -> Tensor:
    """log p of every pair, valid or not, (B, (R + 1) L)."""
    distribution = built.distribution(observation)
    columns = [distribution.log_prob(action.expand(len(observation), 2)) for action in EVERY_ACTION]
    return torch.stack(columns, dim=-1)


def valid() -> Tensor:
    counts = torch.nn.functional.pad(torch.tensor(COUNTS), (0, 1), value=1)
    return torch.stack([counts[:, rule] > location for rule, location in EVERY_ACTION.tolist()], dim=-1)


def test_probabilities_sum_to_one_and_nothing_leaks() -> None:
    probability = joint(policy(), observations(COUNTS)).exp()
    torch.testing.assert_close(probability.sum(dim=-1), torch.ones(4))
    assert (probability[~valid()] == 0).all()
    assert (probability[valid()] > 0).all()


def test_samples_are_valid_and_have_these_probabilities() -> None:
    """20,000 draws a state; five standard errors."""
    built, draws = policy(), 20_000
    probability = joint(built, observations(COUNTS)).exp()
    many = observations(COUNTS).repeat_interleave(draws, dim=0)
    drawn = built.distribution(many).sample(torch.Generator().manual_seed(0))
    index = (drawn[:, 0] * L + drawn[:, 1]).reshape(4, draws)
    for row in range(4):
        frequency = torch.bincount(index[row], minlength=len(EVERY_ACTION)) / draws
        assert (frequency[~valid()[row]] == 0).all()
        error = (probability[row] * (1 - probability[row]) / draws).sqrt()
        assert ((frequency - probability[row]).abs() <= 5 * error + 1e-7).all()


def test_the_location_sees_the_chosen_rule() -> None:
    """The fault of independent heads: with equal counts, two rules still place their locations differently."""
    distribution = policy().distribution(observations([[4, 4, 4]]))
    first, second = (distribution.location_log_probability(torch.tensor([rule])) for rule in (0, 1))
    assert not torch.allclose(first, second, atol=1e-3)


def test_terminate_has_one_location_that_costs_nothing() -> None:
    distribution = policy().distribution(observations(COUNTS))
    location = distribution.location_log_probability(torch.full((4,), R))
    assert (location[:, 0] == 0).all()
    assert torch.isneginf(location[:, 1:]).all()
    terminate = torch.tensor([[R, 0]]).expand(4, 2)
    torch.testing.assert_close(distribution.log_prob(terminate), distribution.rule_log_probability[:, R])


def test_entropy_is_that_of_the_enumerated_pairs() -> None:
    log_probability = joint(policy(), observations(COUNTS))
    finite = log_probability.masked_fill(~valid(), 0.0)
    expected = -(finite.exp() * finite * valid()).sum(dim=-1)
    distribution = policy().distribution(observations(COUNTS))
    torch.testing.assert_close(distribution.entropy(), expected)
    assert distribution.entropy()[1] == 0  # terminate alone


def test_the_updates_entropy_is_right_on_average_over_rules() -> None:
    built = policy()
    distribution = built.distribution(observations(COUNTS))
    probability = distribution.rule_log_probability.exp()
    average = torch.zeros(4)
    for rule in range(R + 1):
        chosen = torch.full((4,), rule)
        average += torch.where(probability[:, rule] > 0, probability[:, rule] * distribution.entropy_given(chosen), 0)
    torch.testing.assert_close(average, distribution.entropy())


def test_the_ratio_is_exactly_one_before_the_first_update() -> None:
    """forward, as collected; evaluate_actions, with the useless masks that the buffer hands in."""
    built, batch = policy(), observations(COUNTS * 8)
    actions, values, collected = built(batch)
    again, updated, entropy = built.evaluate_actions(batch, actions.float(), action_masks=torch.ones(32, 1))
    assert torch.equal(torch.exp(updated - collected), torch.ones(32))
    assert torch.equal(values, again)
    assert entropy.shape == (32,)
    assert torch.equal(built.get_distribution(batch).log_prob(actions), collected)


def test_the_deterministic_action_is_the_likeliest_rule_then_location() -> None:
    built, batch = policy(), observations(COUNTS)
    actions, _ = built.predict(batch.numpy(), deterministic=True)
    distribution = built.distribution(batch)
    rule = distribution.rule_log_probability.argmax(dim=-1)
    assert actions[:, 0].tolist() == rule.tolist()
    assert actions[:, 1].tolist() == distribution.location_log_probability(rule).argmax(dim=-1).tolist()


def test_gradients_are_finite_and_reach_every_parameter() -> None:
    built, batch = policy(), observations(COUNTS * 4)
    actions, _, _ = built(batch)
    check_gradients(built, *built.evaluate_actions(batch, actions))


def test_nothing_is_as_large_as_rules_times_locations() -> None:
    """One head over all pairs is the parameter hog (docs/decisions.md, 7)."""
    layout = ObservationLayout(latent=2, hidden=3, num_rules=100)
    built = FactoredPolicy(
        spaces.Box(-np.inf, np.inf, (layout.size,), np.float32),
        spaces.MultiDiscrete([101, 200]),
        lambda _: 1e-3,
        layout=layout,
        width=8,
        rule_embedding=4,
        terminate_bias=0.0,
    )
    assert max(parameter.numel() for parameter in built.parameters()) < 100 * 200 / 4


def test_terminate_is_unlikely_at_first() -> None:
    torch.manual_seed(0)
    space = spaces.Box(-np.inf, np.inf, (LAYOUT.size,), np.float32)
    settings = {"layout": LAYOUT, "width": 16, "rule_embedding": 4, "terminate_bias": -2.0}
    fresh = FactoredPolicy(space, spaces.MultiDiscrete([R + 1, L]), lambda _: 1e-3, **settings)
    chance = fresh.distribution(observations([[4, 4, 4]])).rule_log_probability[0, R].exp().item()
    assert chance == pytest.approx(1 / (1 + 3 * math.exp(2)), rel=0.1)


def test_outside_masks_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="use_masking=False"):
        policy().get_distribution(observations(COUNTS), np.ones((4, R + 1 + L)))
    assert isinstance(policy().get_distribution(observations(COUNTS)), FactoredDistribution)
