"""The mixture's density, moments and temperature in closed form."""

import math

import pytest
import torch

from rlflow.nn.mixture import GaussianMixture, MixtureHead

DRAWS = 40_000


def mixture(*batch: int) -> GaussianMixture:
    """Weights 1/4 and 3/4, means (-2, 0) and (2, 1), sigmas 0.5 and 1."""
    logits = torch.tensor([0.25, 0.75]).log()
    mean = torch.tensor([[-2.0, 0.0], [2.0, 1.0]])
    log_sigma = torch.tensor([[0.5, 0.5], [1.0, 1.0]]).log()
    return GaussianMixture(logits.expand(*batch, 2), mean.expand(*batch, 2, 2), log_sigma.expand(*batch, 2, 2))


def weights(temperature: float) -> tuple[float, float]:
    low, high = 0.25 ** (1 / temperature), 0.75 ** (1 / temperature)
    return low / (low + high), high / (low + high)


def test_log_prob_is_the_density_of_the_mixture() -> None:
    value = torch.tensor([0.3, -0.7])
    parts = [
        weight * torch.distributions.Normal(torch.tensor(mean), sigma).log_prob(value).sum().exp()
        for weight, mean, sigma in ((0.25, [-2.0, 0.0], 0.5), (0.75, [2.0, 1.0], 1.0))
    ]
    torch.testing.assert_close(mixture().log_prob(value), sum(parts, torch.tensor(0.0)).log())


@pytest.mark.parametrize("temperature", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("scale_sigma", [True, False])
def test_moments_of_samples_follow_from_the_temperature(temperature: float, scale_sigma: bool) -> None:
    """Tau divides the logits and, by the switch, multiplies the variance; sigma is really drawn (a prototype
    returned the mean). Five standard errors of mean and variance are allowed."""
    sample = mixture(DRAWS).sample(temperature, scale_sigma=scale_sigma, generator=torch.Generator().manual_seed(0))[
        :, 0
    ]
    low, high = weights(temperature)
    factor = temperature if scale_sigma else 1.0
    mean = 2 * (high - low)
    variance = low * (0.25 * factor + 4) + high * (1.0 * factor + 4) - mean**2
    assert abs(sample.mean().item() - mean) < 5 * math.sqrt(variance / DRAWS)
    fourth = ((sample - mean) ** 4).mean().item()
    assert abs(sample.var().item() - variance) < 5 * math.sqrt((fourth - variance**2) / DRAWS)


def test_temperature_zero_is_the_mean_of_the_likeliest_component() -> None:
    torch.testing.assert_close(mixture(3).sample(0.0), torch.tensor([[2.0, 1.0]]).expand(3, 2))


def test_the_same_generator_gives_the_same_draw() -> None:
    first, second = (mixture(5).sample(1.0, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, second)


def test_the_head_can_learn_a_two_mode_target() -> None:
    """After 300 steps the likelihood beats the best single Gaussian's by far more than the noise."""
    torch.manual_seed(0)
    head = MixtureHead(1, 2, 1)
    target = torch.where(torch.arange(512) % 2 == 0, 3.0, -3.0)[:, None] + 0.1 * torch.randn(512, 1)
    optimiser = torch.optim.Adam(head.parameters(), lr=0.03)
    for _ in range(300):
        loss = -head(torch.ones(512, 1)).log_prob(target).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    single_gaussian = 0.5 * math.log(2 * math.pi * math.e * 9.0)
    assert loss.item() < single_gaussian - 1.0
