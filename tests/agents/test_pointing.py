"""Pointing: the distribution in closed form, and heads that do not care for order or empty places."""

import math

import pytest
import torch
from gymnasium import spaces
from torch import Tensor

from rlflow.agents.pointing import PointerDistribution, PointingPolicy, Reading

PRESENT = torch.tensor([[True, True, False], [False, False, False]])
FOUND = PointerDistribution.of(torch.tensor([[1.0, 0.0, 9.0], [9.0, 9.0, 9.0]]), torch.tensor([[0.0], [5.0]]), PRESENT)


def test_probabilities_are_those_of_what_is_there() -> None:
    """Logits 1, 0 and, of terminate, 0; the second row has nothing but terminate."""
    total = math.e + 2
    expected = torch.tensor([[math.e / total, 1 / total, 0.0, 1 / total], [0.0, 0.0, 0.0, 1.0]])
    torch.testing.assert_close(FOUND.log_probability.exp(), expected)
    assert FOUND.mode().tolist() == [0, 3]
    assert FOUND.log_prob(torch.tensor([2, 3])).tolist() == [-math.inf, 0.0]
    torch.testing.assert_close(FOUND.entropy()[1], torch.tensor(0.0))


def test_draws_have_these_probabilities() -> None:
    generator = torch.Generator().manual_seed(0)
    drawn = torch.stack([FOUND.sample(generator)[0] for _ in range(2000)])
    share = (drawn == 0).double().mean().item()
    expected = math.e / (math.e + 2)
    assert abs(share - expected) < 5 * math.sqrt(expected * (1 - expected) / 2000)
    assert (drawn != 2).all()


def test_the_likeliest_come_first_and_those_that_are_masked_never() -> None:
    assert FOUND.likeliest(5) == [0, 1]
    assert FOUND.likeliest(1) == [0]
    drawn = [tuple(FOUND.likeliest(2, torch.Generator().manual_seed(seed))) for seed in range(40)]
    assert set(drawn) == {(0, 1), (1, 0)}


class Plain(PointingPolicy):
    """Choices are numbers that are observed; one that is 0 is not there."""

    def build_networks(self) -> None:
        self.build_heads(4, 2, terminate_bias=-1.5)

    def read(self, observation: Tensor) -> Reading:
        present = observation != 0
        row, place = present.nonzero(as_tuple=True)
        choices = observation[row, place][:, None] * torch.ones(4)
        context = torch.stack([observation.sum(1), observation.abs().amax(1)], dim=1)
        return Reading(choices, present, row, context, prior=0.1 * observation[row, place])


@pytest.fixture
def policy() -> Plain:
    torch.manual_seed(0)
    made = Plain(spaces.Box(-9, 9, (4,)), spaces.Discrete(5), lambda _: 1e-3, net_arch=[])
    with torch.no_grad():
        made.score.weight.normal_()
    return made


def test_order_and_empty_places_do_not_matter(policy: Plain) -> None:
    rows = torch.tensor([[1.0, 2.0, 3.0, 0.0], [0.0, 3.0, 1.0, 2.0]])
    one, other = policy.distribution(rows).log_probability
    torch.testing.assert_close(one[[0, 1, 2, 3, 4]], other[[2, 3, 1, 0, 4]])
    torch.testing.assert_close(*policy.predict_values(rows))


def test_a_prior_is_added_and_terminate_has_its_bias(policy: Plain) -> None:
    """With scores of 0 the logits are the prior, 0.1 a unit, and the bias."""
    with torch.no_grad():
        policy.score.weight.zero_()
        policy.terminate[-1].weight.zero_()
    found, values = policy.distribution_and_values(torch.tensor([[1.0, -2.0, 0.0, 5.0]]))
    expected = torch.log_softmax(torch.tensor([0.1, -0.2, -torch.inf, 0.5, -1.5]), dim=0)
    torch.testing.assert_close(found.log_probability[0], expected)
    assert values.shape == (1, 1)
