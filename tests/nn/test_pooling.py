"""Pooling of rows of different lengths, beside a loop; an empty row gives 0."""

import torch

from rlflow.nn import pooling


def test_each_row_is_pooled_by_itself() -> None:
    values = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)) - 2.0
    row = torch.tensor([0, 0, 2, 2, 2, 4])
    largest, mean = pooling.largest(values, row, 6), pooling.mean(values, row, 6)
    for number in range(6):
        mine = values[row == number]
        torch.testing.assert_close(largest[number], mine.amax(0) if len(mine) else torch.zeros(3))
        torch.testing.assert_close(mean[number], mine.mean(0) if len(mine) else torch.zeros(3))


def test_the_gradient_goes_to_the_largest() -> None:
    values = torch.tensor([[1.0], [3.0], [2.0]], requires_grad=True)
    pooling.largest(values, torch.tensor([0, 0, 1]), 2).sum().backward()
    assert values.grad is not None
    assert values.grad.flatten().tolist() == [0.0, 1.0, 1.0]
