"""Masks and masked distributions over actions, in torch; `representation.action_space` is the same in numpy.

A masked choice has log-probability -inf, so it is never drawn and adds nothing to an entropy.
"""

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
    # -inf times 0 is nan in the gradient, though the term is then discarded
    finite = log_probability.masked_fill(~valid, 0.0)
    return -(finite * finite.exp() * valid).sum(dim=-1)


def sample_categorical(logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Draw (...) int64 from softmax of logits (..., A), where -inf is never drawn (Gumbel's maximum)."""
    return perturbed(logits, generator).argmax(dim=-1)


def perturbed(logits: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """Logits (..., A) plus Gumbel noise: the k largest are k draws without replacement (Kool et al. 2019)."""
    uniform = torch.rand(logits.shape, generator=generator, device=logits.device, dtype=logits.dtype)
    tiny = torch.finfo(logits.dtype).tiny  # a uniform draw may be 0, whose logarithm is -inf
    return logits - (-(uniform.clamp_min(tiny)).log()).log()
