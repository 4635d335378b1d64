"""The choice of the episodes that a fit never trains on."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

Episode = TypeVar("Episode")


def split_episodes(
    episodes: Sequence[Episode], held_out_fraction: float, seed: int
) -> tuple[list[Episode], list[Episode]]:
    """Return the training episodes and the held-out ones, each in their order.

    Whole episodes are held out, so that no held-out state is the neighbour of one that was trained on. At least one is
    held out if the fraction is positive and there are two or more.
    """
    order = np.random.default_rng(seed).permutation(len(episodes))
    held_out = round(held_out_fraction * len(episodes))
    if held_out_fraction > 0 and len(episodes) > 1:
        held_out = min(max(held_out, 1), len(episodes) - 1)
    training, others = sorted(order[held_out:]), sorted(order[:held_out])
    return [episodes[number] for number in training], [episodes[number] for number in others]
