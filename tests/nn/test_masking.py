"""Masked distributions leak nothing, and agree with the numpy action space."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from rlflow.nn.masking import masked_entropy, masked_log_softmax, prefix_mask, rule_mask, sample_categorical
from rlflow.representation.action_space import ActionSpace


@given(st.lists(st.integers(0, 4), min_size=3, max_size=3))
def test_torch_masks_equal_the_numpy_masks(counts: list[int]) -> None:
    space, array, tensor = ActionSpace(3, 4), np.array(counts), torch.tensor(counts)
    np.testing.assert_array_equal(rule_mask(tensor).numpy(), space.rule_mask(array))
    np.testing.assert_array_equal(prefix_mask(tensor, 4).numpy(), space.location_mask(array))


def test_invalid_choices_have_probability_exactly_zero_and_finite_gradients() -> None:
    logits = torch.tensor([[50.0, 0.0, 1.0]], requires_grad=True)
    mask = torch.tensor([[False, True, True]])
    log_probability = masked_log_softmax(logits, mask)
    assert log_probability.exp()[0, 0] == 0
    entropy = masked_entropy(log_probability)
    p = torch.softmax(torch.tensor([0.0, 1.0]), 0)
    torch.testing.assert_close(entropy[0], -(p * p.log()).sum())
    (entropy.sum() + log_probability[0, 1]).backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    assert logits.grad[0, 0] == 0


def test_sampling_has_the_right_frequencies_and_never_draws_minus_infinity() -> None:
    """20,000 draws: the standard error of a frequency is below 0.0036; five of them are allowed."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.tensor([0.0, -torch.inf, 1.0]).expand(20_000, 3)
    frequency = torch.bincount(sample_categorical(logits, generator), minlength=3) / 20_000
    assert frequency[1] == 0
    torch.testing.assert_close(frequency, torch.softmax(logits[0], 0), atol=0.018, rtol=0)
