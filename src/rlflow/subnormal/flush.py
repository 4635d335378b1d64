"""Weights with subnormal numbers, and the model with these numbers at zero, or larger than they are.

    found = decayed(model)
    found.weights                                   those whose readers only multiply and add them
    multiplied(model, found.weights, 0.0)           the model without the numbers; `model` is left as it is

What is added to a sum of products by numbers w, each multiplied by an x, is at most the sum of |w| times the largest
|x|: that sum is the `magnitude` of a weight, and the bound of what is lost where they become zero.

A weight of one number everywhere is no weight that has decayed: it is an epsilon, which keeps a logarithm or a
quotient from its pole, or a mask. It is left alone, as is what any other operator reads.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto, TensorProto

from rlflow.subnormal.numbers import SMALLEST_NORMAL, below, subnormal
from rlflow.subnormal.weights import Weight, weights_of


@dataclass(frozen=True)
class Decayed:
    """A weight with so many subnormal numbers, by its place in `weights_of`; the sum of their sizes is `magnitude`."""

    place: int
    name: str
    numbers: int
    magnitude: float


@dataclass(frozen=True)
class Found:
    """The weights of a model that have subnormal numbers: those that may be set to zero, and those that may not."""

    weights: tuple[Decayed, ...] = ()
    left: tuple[Decayed, ...] = ()

    @property
    def all(self) -> tuple[Decayed, ...]:
        return (*self.weights, *self.left)


def decayed(model: ModelProto) -> Found:
    """Look through all weights of a model; those in files are mapped and read once."""
    weights, left = [], []
    for place, weight in enumerate(weights_of(model)):
        if weight.stored not in SMALLEST_NORMAL or not (small := _small(weight)).any():
            continue
        sizes = np.abs(weight.products()[small].astype(np.float64))
        found = Decayed(place, weight.name, int(small.sum()), float(sizes.sum()))
        (weights if weight.is_coefficient and _varies(weight.values()) else left).append(found)
    return Found(tuple(weights), tuple(left))


def multiplied(model: ModelProto, which: Collection[Decayed], factor: float) -> ModelProto:
    """Return a copy of a model whose subnormal numbers in some weights are multiplied by a factor."""
    copy = ModelProto()
    copy.CopyFrom(model)
    weights = weights_of(copy)
    for each in which:
        weight = weights[each.place]
        values, small = np.array(weight.values()), _small(weight)
        values[small] = values[small].astype(np.float64) * factor + 0.0  # no zero has a sign
        weight.store(values)
    return copy


def _small(weight: Weight) -> np.ndarray:
    """Which numbers of a weight are subnormal, or are so by the time that they are multiplied."""
    values = weight.values()
    small = subnormal(values)
    if weight.stored == TensorProto.DOUBLE and weight.element == TensorProto.FLOAT:
        small |= below(values, SMALLEST_NORMAL[TensorProto.FLOAT])
    if weight.factors is not None:
        small |= subnormal(weight.products())
    return small


def _varies(values: np.ndarray) -> bool:
    return bool((values != values.reshape(-1)[0]).any())
