"""Mixtures of diagonal Gaussians with a temperature (Ha and Schmidhuber 2018, World Models, the MDN)."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from rlflow.nn.masking import sample_categorical

# In units of the target's own spread. Without a lower bound a deterministic target drives the likelihood to infinity.
LOG_SIGMA_MIN, LOG_SIGMA_MAX = -4.0, 3.0


@dataclass(frozen=True)
class GaussianMixture:
    """A mixture of K diagonal Gaussians: logits (..., K), mean (..., K, Z), log_sigma (..., K, Z)."""

    logits: Tensor
    mean: Tensor
    log_sigma: Tensor

    def log_prob(self, value: Tensor) -> Tensor:
        """Log-density (...) in nats of value (..., Z)."""
        scaled = (value[..., None, :] - self.mean) * torch.exp(-self.log_sigma)
        component = (-0.5 * scaled**2 - self.log_sigma - 0.5 * math.log(2 * math.pi)).sum(dim=-1)
        return torch.logsumexp(torch.log_softmax(self.logits, dim=-1) + component, dim=-1)

    def sample(
        self, temperature: float = 1.0, *, scale_sigma: bool = True, generator: torch.Generator | None = None
    ) -> Tensor:
        """Draw one value (..., Z).

        The temperature tau divides the mixture logits (paper section 3.3); `scale_sigma` also multiplies
        sigma by sqrt(tau) (Ha and Schmidhuber 2018). At tau = 0 with `scale_sigma`: the mean of the likeliest
        component.
        """
        if temperature == 0:
            choice = self.logits.argmax(dim=-1)
        else:
            choice = sample_categorical(self.logits / temperature, generator)

        index = choice[..., None, None].expand(*choice.shape, 1, self.mean.shape[-1])
        mean = self.mean.gather(-2, index).squeeze(-2)
        sigma = self.log_sigma.gather(-2, index).squeeze(-2).exp()

        noise = torch.randn(mean.shape, generator=generator, device=mean.device, dtype=mean.dtype)
        spread = math.sqrt(temperature) if scale_sigma else 1.0
        return mean + sigma * noise * spread


class MixtureHead(nn.Module):
    """Linear map of features (..., D) to a mixture of K Gaussians over Z dimensions."""

    def __init__(self, inputs: int, mixtures: int, dimensions: int) -> None:
        super().__init__()
        self.mixtures, self.dimensions = mixtures, dimensions
        self.linear = nn.Linear(inputs, mixtures * (1 + 2 * dimensions))

    def forward(self, features: Tensor) -> GaussianMixture:
        """Features (..., D) -> mixture over (..., Z)."""
        size = self.mixtures * self.dimensions
        logits, mean, log_sigma = self.linear(features).split([self.mixtures, size, size], dim=-1)
        shape = (*features.shape[:-1], self.mixtures, self.dimensions)
        bounded = log_sigma.clamp(LOG_SIGMA_MIN, LOG_SIGMA_MAX)
        return GaussianMixture(logits, mean.reshape(shape), bounded.reshape(shape))
