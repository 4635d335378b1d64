"""Weights with subnormal numbers, and the model with these numbers at zero, or larger than they are.

    found = decayed(model)
    found.weights                                   those whose readers only multiply and add them
    multiplied(model, found.weights, 0.0)           the model without the numbers; `model` is left as it is

Where some are subnormal, others are nearly so, and what they are multiplied by makes subnormal results of them. So all
numbers below `NEARLY` times the smallest normal one are meant, in all weights of a model that has a subnormal one.

What is added to a sum of products by numbers w, each multiplied by an x, is at most the sum of |w| times the largest
|x|: that sum is the `magnitude` of a weight, and the bound of what is lost where they become zero.

A weight of one number everywhere is no weight that has decayed: it is an epsilon, which keeps a logarithm or a
quotient from its pole, or a mask. It is left alone, as is what any other operator reads.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from onnx import ModelProto

from rlflow.subnormal.numbers import SMALLEST_NORMAL, below
from rlflow.subnormal.weights import Weight, weights_of

NEARLY = 2.0**24
"""Times the smallest normal number."""


@dataclass(frozen=True)
class Decayed:
    """A weight with so many numbers that are subnormal or nearly so, by its place in `weights_of`.

    `subnormal` of them are; the sum of the sizes of all is `magnitude`.
    """

    place: int
    name: str
    numbers: int
    subnormal: int
    magnitude: float


@dataclass(frozen=True)
class Found:
    """The weights of a model with such numbers: those that may be set to zero, and those that may not."""

    weights: tuple[Decayed, ...] = ()
    left: tuple[Decayed, ...] = ()

    @property
    def all(self) -> tuple[Decayed, ...]:
        return (*self.weights, *self.left)


def decayed(model: ModelProto) -> Found:
    """Look through all weights of a model; without a subnormal number nothing is found.

    Those in files are mapped and read once.
    """
    weights: list[Decayed] = []
    left: list[Decayed] = []
    for place, weight in enumerate(weights_of(model)):
        is_float = weight.readers and weight.stored in SMALLEST_NORMAL
        if not is_float or not (small := _small(weight, NEARLY)).any():
            continue
        sizes, subnormal = np.abs(weight.products()[small].astype(np.float64)), _small(weight, 1.0)
        found = Decayed(place, weight.name, int(small.sum()), int(subnormal.sum()), float(sizes.sum()))
        if weight.is_coefficient and _varies(weight.values()):
            weights.append(found)
        elif found.subnormal:
            left.append(found)
    has_subnormal = any(each.subnormal for each in (*weights, *left))
    return Found(tuple(weights), tuple(left)) if has_subnormal else Found()


def multiplied(model: ModelProto, which: Collection[Decayed], factor: float) -> ModelProto:
    """Return a copy of a model in some weights of which these numbers are multiplied by a factor."""
    copy = ModelProto()
    copy.CopyFrom(model)
    weights = weights_of(copy)
    for each in which:
        weight = weights[each.place]
        values, small = np.array(weight.values()), _small(weight, NEARLY)
        values[small] = values[small].astype(np.float64) * factor + 0.0  # no zero has a sign
        weight.store(values)
    return copy


def _small(weight: Weight, times: float) -> np.ndarray:
    """Tell which numbers of a weight are below so many times the smallest normal one, perhaps with its factors."""
    small = below(weight.values(), times * SMALLEST_NORMAL.get(weight.element, 0.0))
    if weight.factors is not None:
        small |= below(weight.products(), times * SMALLEST_NORMAL[weight.stored])
    return small


def _varies(values: np.ndarray) -> bool:
    return bool((values != values.reshape(-1)[0]).any())
