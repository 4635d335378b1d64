"""Pooling of values that stand end to end, a few for each row of a batch."""

import torch
from torch import Tensor
from torch.nn import functional

from rlflow.nn.message_passing import scatter_sum


def largest(values: Tensor, row: Tensor, rows: int) -> Tensor:
    """Largest (rows, H) of the values (N, H) of each `row` (N,), which ascends; 0 where there are none."""
    number = torch.bincount(row, minlength=rows)
    # a bag of embeddings keeps whose value was the largest, which makes the gradient a third as costly as `amax` does
    return functional.embedding_bag(torch.arange(len(row)), values, number.cumsum(0) - number, mode="max")


def mean(values: Tensor, row: Tensor, rows: int) -> Tensor:
    """Mean (rows, H) of the values (N, H) of each `row` (N,); 0 where there are none."""
    number = torch.bincount(row, minlength=rows).clamp_min(1)
    return scatter_sum(values, row, rows) / number[:, None]
