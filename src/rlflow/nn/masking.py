"""Distributions over the valid choices only; the torch twin of `representation.action_space`."""

import torch
from torch import Tensor


def rule_mask(counts: Tensor) -> Tensor:
    """Valid rules: counts (..., R) -> (..., R + 1) bool; terminate, the last one, is always valid."""
    return torch.nn.functional.pad(counts > 0, (0, 1), value=True)


def prefix_mask(count: Tensor, size: int) -> Tensor:
    """Valid locations: count (...) -> (..., size) bool, true for the first `count` of them."""
    return torch.arange(size, device=count.device) < count[..., None]


def masked_log_softmax(logits: Tensor, mask: Tensor) -> Tensor:
    """Log-probabilities (..., A) under mask (..., A), one valid at least; invalid ones are exactly -inf."""
    return torch.log_softmax(logits.masked_fill(~mask, -torch.inf), dim=-1)


def masked_entropy(log_probability: Tensor) -> Tensor:
    """Entropy (...) in nats of log-probabilities (..., A) that may be -inf; 0 log 0 = 0, in gradients too."""
    valid = torch.isfinite(log_probability)
    finite = log_probability.masked_fill(~valid, 0.0)
    return -(finite * finite.exp() * valid).sum(dim=-1)


def sample_categorical(logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Draw (...) int64 from softmax of logits (..., A), where -inf is never drawn (Gumbel's maximum)."""
    return perturbed(logits, generator).argmax(dim=-1)


def perturbed(logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Logits (..., A) plus Gumbel noise: the k largest are k draws without replacement (Kool et al. 2019)."""
    uniform = torch.rand(logits.shape, generator=generator, device=logits.device, dtype=logits.dtype)
    tiny = torch.finfo(logits.dtype).tiny
    return logits - (-(uniform.clamp_min(tiny)).log()).log()
